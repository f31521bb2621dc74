package httpmw

import (
	"log/slog"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// Lock returns middleware that holds the lock that key names around a handler. It panics on a key or
// an option that cannot work; [Config.Middleware] returns an error instead.
//
// Use it inside the router, which sets the value of {id}. Around a mux, every request fails if the key
// needs a path parameter. Flushing, hijacking, [http.ResponseController] and copies from
// files work as without it. A panic passes through after the release. If the caller leaves, the
// handler's context ends, and the lock is held until the handler has returned.
//
// An answer that fits into the server's buffer reaches the client after the release. So the client's
// next request finds the lock free. A larger or flushed answer is sent before the release.
func Lock(l *core.Locker, key string, opts ...core.Option) func(http.Handler) http.Handler {
	mw, err := Config{Locker: l, Key: key, Options: opts}.Middleware()
	if err != nil {
		panic("httpmw: " + err.Error())
	}
	return mw
}

// Config is [Lock] with all settings. Locker and one of Key and KeyFunc are required.
type Config struct {
	Locker *core.Locker

	// Key is the template of the lock's name; key.Parse in package core/key describes its form. Its
	// sources are:
	//
	//	{name|int}         a path parameter
	//	{query:name|int}
	//	{header:Name|int}
	//	{body:a.b}         a member of a JSON body
	//
	// The text of a path, a query or a header has no type. So the template says what it is: int, uuid or
	// text, see [key.Form]. Without that it is an error. With int, /orders/42 and /orders/042 have one lock.
	//
	// If a value is missing, empty, not of its form, or repeated with different contents, the answer is 400. So it is
	// for {body:…} if the Content-Type is not exactly application/json: a handler might read a form. Bodies are
	// read before the lock is taken, and put back.
	//
	// Work that needs several names at once has several templates, with a space between them, such as
	// "account:{query:from|int} account:{query:to|int}". docs/guides/names.md has the rules.
	//
	// Path parameters are those of [http.Request.PathValue], which net/http unescapes. Chi does not if a path has
	// unusual escapes. Such a request gets 400, since its handler may unescape or not; the recipe for chi unescapes.
	Key string
	// KeyFunc makes the lock's name, where no template can. Names are 1 to 200 bytes of UTF-8 without
	// braces, spaces and control characters; (*key.Key).Name makes a valid name from any values. An
	// error is answered with 400, and becomes the Problem's Err.
	KeyFunc func(*http.Request) (string, error)

	// Options are those of the lock. Middleware checks them once. Without [core.WithWait] among them,
	// the middleware does not wait.
	//
	// [core.WithDedup] needs a [core.WithDedupScope], here, in With or in New. It names what is done once, such as
	// "ship": the middleware may stand before routes that do several things. A request is done if its status is below
	// 400, or if it wrote none and its context has not ended: a handler that gives up writes nothing. A hijacked
	// request is never done.
	Options []core.Option

	// Skipper selects requests that pass without a lock. Their key is not looked at. The default,
	// nil, selects none.
	Skipper func(*http.Request) bool

	// MaxBody limits how many bytes of a body are read for {body:…}, and kept in memory while the
	// request runs. A larger body is answered with 413. Zero means 1 MiB, the default.
	// Bodies are not touched if the key does not need them.
	MaxBody int64

	// ErrorHandler answers instead of [Problem.ServeHTTP], the default. It is called for the
	// middleware's own refusals, and for a loss if nothing was written yet, with the request from
	// outside the middleware. It has to write an answer: otherwise net/http sends an empty 200.
	ErrorHandler func(http.ResponseWriter, *http.Request, *Problem)

	// Logger gets one line for each route whose requests fail because the route lacks a source of the
	// key, or because the options cannot work there. For nil, the default, it is [slog.Default] at
	// that time.
	Logger *slog.Logger
}

// Middleware returns the middleware. Settings that cannot work are [core.ErrInvalid].
func (c Config) Middleware() (func(http.Handler) http.Handler, error) {
	l, err := c.lock(nil)
	if err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("httpmw: nil handler")
		}
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { l.serve(w, r, nil, next) })
	}, nil
}

func (c Config) lock(fields adapter.Sources[*request]) (*lock, error) {
	s := rule.Settings[*request]{Locker: c.Locker, Key: c.Key, Fields: fields, Options: c.Options, MaxBody: c.MaxBody, Logger: c.Logger}
	if c.KeyFunc != nil {
		s.KeyFunc = func(r *request) (string, error) { return c.KeyFunc(r.R) }
	}
	ready, err := rule.New(s)
	return &lock{c, ready}, err
}
