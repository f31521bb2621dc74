package httpmw

import (
	"log/slog"
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/httpmw/internal/door"
)

// Lock returns middleware that holds the lock that key names around a handler. It panics
// on a key or an option that cannot work; [Config.Middleware] returns an error instead.
//
// It stands inside the router, which makes {id} known: around a mux, every request fails.
// Flushing, hijacking, [http.ResponseController] and copies from files work as without it. A panic
// passes through after the release. If the caller leaves, the handler's context ends, and
// the lock is held until the handler has returned.
//
// An answer that fits into the server's buffer reaches the client after the release, so that
// the client's next request finds the lock free. What was flushed, or is larger, is sent before.
func Lock(l *core.Locker, key string, opts ...core.Option) func(http.Handler) http.Handler {
	mw, err := Config{Locker: l, Key: key, Options: opts}.Middleware()
	if err != nil {
		panic("httpmw: " + err.Error())
	}
	return mw
}

// Config is [Lock] with everything that can be chosen. Locker and one of Key and KeyFunc
// are required.
type Config struct {
	Locker *core.Locker

	// Key is the template of the lock's name, as [key.Parse] describes it. Its sources:
	//
	//	{name}                        a parameter of the path
	//	{query:name}
	//	{header:Name}, {cookie:name}
	//	{form:name}                   from body or query
	//	{body:a.b}                    a member of a JSON body
	//	{http:method}, {http:route}   the route is the request's Pattern
	//
	// A value that is missing, empty, or there several times and not the same, is answered
	// with 400. So is a body, for {body:…}, that says it is not JSON. Bodies are read before the
	// lock is taken, and put back.
	//
	// Parameters of the path are those of [http.Request.PathValue], which net/http unescapes. Chi
	// does not, where a path has unusual escapes: there, a KeyFunc can.
	Key string
	// KeyFunc makes the lock's name, where no template can. Names are 1 to 200 bytes of
	// UTF-8 without braces, spaces and control characters: [key.Key.Name] makes such of
	// anything. An error is answered with 400, and is the Problem's Err.
	KeyFunc func(*http.Request) (string, error)

	// Options are those of the lock. They are checked once, by Middleware. Without
	// [core.WithWait] among them the door does not wait. With [core.WithDedup], also from
	// New or With, a request is done if its status is below 400 or it wrote none, but not if it
	// was hijacked. The same work is what has the same method and route pattern, unless
	// [core.WithDedupScope], here, in With or in New, says otherwise.
	Options []core.Option

	// Skipper lets requests pass without a lock, and without a look at the key. The default,
	// nil, lets none.
	Skipper func(*http.Request) bool

	// HeldStatus answers a request whose lock is held: 409, the default, also chosen by
	// zero, or 423 ([http.StatusLocked]).
	HeldStatus int

	// MaxBody is how many bytes of a body are looked at for {body:…} and {form:…}, and
	// kept in memory while the request runs. A larger body is answered with 400. The
	// default, also chosen by zero, is 1 MiB. Other requests' bodies are not touched.
	MaxBody int64

	// ErrorHandler answers in the place of [Problem.ServeHTTP], the default. It is called
	// for the door's own refusals, and for a loss if nothing was written yet, with the request
	// from outside the door. It has to answer: net/http makes an empty 200 of silence.
	ErrorHandler func(http.ResponseWriter, *http.Request, *Problem)

	// Logger is told, once for each route, if the route lacks a source of the key, or if the
	// options cannot work there. The default, also chosen by nil, is [slog.Default] at that time.
	Logger *slog.Logger
}

// Middleware returns the middleware. What cannot work is [core.ErrInvalid].
func (c Config) Middleware() (func(http.Handler) http.Handler, error) {
	d, err := door.New(door.Rule{
		Locker: c.Locker, Key: c.Key, KeyFunc: c.KeyFunc != nil, Options: c.Options,
		HeldStatus: c.HeldStatus, MaxBody: c.MaxBody, Logger: c.Logger,
	})
	if err != nil {
		return nil, err
	}
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("httpmw: nil handler")
		}
		return &locked{Config: c, door: d, next: next}
	}, nil
}
