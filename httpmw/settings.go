package httpmw

import (
	"log/slog"

	"github.com/holdfast-go/holdfast/core"
)

// Settings are those of the middleware of every framework, where they are called Config. C is what handlers get, such as
// an *http.Request or a context, and E is the ErrorHandler. Locker and one of Key and KeyFunc are required.
type Settings[C, E any] struct {
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
	// Path parameters are those that handlers read: [http.Request.PathValue], c.Param, c.Params, unescaped. One that its
	// router has left as it was sent gets 400, since the handler may unescape it or not. Chi does that if a path has
	// unusual escapes; the recipe for chi unescapes.
	Key string
	// KeyFunc makes the lock's name, where no template can. Names are 1 to 200 bytes of UTF-8 without
	// braces, spaces and control characters; (*key.Key).Name makes a valid name from any values. An
	// error is answered with 400, and becomes the Problem's Err.
	KeyFunc func(C) (string, error)

	// Options are those of the lock. New checks them once. Without [core.WithWait] among them,
	// the middleware does not wait.
	//
	// [core.WithDedup] needs a [core.WithDedupScope], here, in With or in New. It names what is done once, such as
	// "ship": the middleware may stand before routes that do several things. A request is done if its handler
	// returned no error, and its status is below 400, but not 307 or 308, which send it elsewhere. It is also done if the handler
	// wrote no status and its context has not ended: a handler that gives up writes nothing. A hijacked request is never done.
	Options []core.Option

	// Skipper selects requests that pass without a lock. Their key is not looked at. The default,
	// nil, selects none.
	Skipper func(C) bool

	// MaxBody limits how many bytes of a body are read for {body:…}, and kept in memory while the
	// request runs. A larger body is answered with 413. Zero means 1 MiB, the default.
	// Bodies are not touched if the key does not need them.
	MaxBody int64

	// ErrorHandler answers instead of the default, [Problem.ServeHTTP]; the packages of Echo say what theirs is. It is called for the
	// middleware's own refusals, and for a loss if nothing was written yet, with the request from
	// outside the middleware. It has to write an answer: otherwise the server sends an empty 200.
	ErrorHandler E

	// Logger gets one line for each route whose requests fail because the route lacks a source of the
	// key, or because the options cannot work there. For nil, the default, it is [slog.Default] at
	// that time.
	Logger *slog.Logger
}
