package fibermw

import (
	"log/slog"
	"strings"

	"github.com/gofiber/fiber/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// Lock returns a handler that holds the lock that key names around the handlers after it. It panics on
// a key or an option that cannot work; [Config.ToHandler] returns an error instead. Refusals and panics
// are handled as in [httpmw.Lock].
//
// Use it on routes. In App.Use, requests have no parameters. If the key needs one, such requests get
// 500, unless Config.Skipper lets them pass.
func Lock(l *core.Locker, key string, opts ...core.Option) fiber.Handler {
	h, err := Config{Locker: l, Key: key, Options: opts}.ToHandler()
	if err != nil {
		panic("fibermw: " + err.Error())
	}
	return h
}

// Config is [Lock] with all settings. Locker and one of Key and KeyFunc are required. What is not
// explained here is as in [httpmw.Config].
type Config struct {
	Locker *core.Locker

	// Key is the template of the lock's name, with the sources of [httpmw.Config].
	Key string
	// KeyFunc makes the lock's name, where no template can. (*key.Key).Name makes a valid name from
	// any values. An error is answered with 400, and becomes the Problem's Err. The name is
	// copied, so it may be a string of Fiber's.
	KeyFunc func(c fiber.Ctx) (string, error)

	// Options are those of the lock. ToHandler checks them once. Without [core.WithWait] among them,
	// the handler does not wait.
	Options []core.Option

	// Skipper selects requests that pass without a lock. The default, nil, selects none.
	Skipper func(c fiber.Ctx) bool

	// MaxBody limits how many bytes of a body are read for {body:…}. A larger body is answered with 413.
	// Zero means 1 MiB, the default. Fiber has read the whole body before, except with
	// fiber.Config.StreamRequestBody. Then a body of unknown length gets 413, too, and the handler finds
	// what was read in c.Body(): there is no stream any more. A key without such a source leaves the body
	// alone.
	MaxBody int64

	// ErrorHandler answers instead of the default, which writes p. It is called for an error of core that
	// a handler returns, too. Fiber gets what it returns.
	ErrorHandler func(c fiber.Ctx, p *httpmw.Problem) error

	// Logger gets one line for each route whose requests fail because of the program, not the request.
	// For nil, the default, it is [slog.Default] at that time.
	Logger *slog.Logger
}

// ToHandler returns the handler. Settings that cannot work are [core.ErrInvalid].
func (c Config) ToHandler() (fiber.Handler, error) {
	l, err := c.lock(nil)
	if err != nil {
		return nil, err
	}
	return func(c fiber.Ctx) error { return l.serve(c, nil, c.Next) }, nil
}

func (c Config) lock(fields adapter.Sources[request]) (*lock, error) {
	s := rule.Settings[request]{Locker: c.Locker, Key: c.Key, Fields: fields, Options: c.Options, MaxBody: c.MaxBody, Logger: c.Logger}
	if c.KeyFunc != nil {
		s.KeyFunc = func(r request) (string, error) {
			name, err := c.KeyFunc(r.c)
			return strings.Clone(name), err // Fiber reuses the memory of its strings, and the name outlives the handler
		}
	}
	if c.ErrorHandler == nil {
		c.ErrorHandler = write
	}
	ready, err := rule.New(s)
	return &lock{c, ready}, err
}
