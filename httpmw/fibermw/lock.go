package fibermw

import (
	"context"

	"github.com/gofiber/fiber/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
	"github.com/holdfast-go/holdfast/httpmw/internal/settings"
)

// Lock returns a handler that holds the lock that key names around the handlers after it. It panics on
// a key or an option that cannot work; [New] returns an error instead. Refusals and panics
// are handled as in [httpmw.Lock].
//
// Use it on routes. In App.Use, requests have no parameters. If the key needs one, such requests get
// 500, unless Config.Skipper lets them pass.
func Lock(l *core.Locker, key string, opts ...core.Option) fiber.Handler {
	return rule.Must[fiber.Handler]("fibermw")(New(Config{Locker: l, Key: key, Options: opts}))
}

// Config is [Lock] with all settings.
//
// The name of a KeyFunc is copied, so it may be a string of Fiber's. An ErrorHandler is called for an error of core that a
// handler returns, too, and Fiber gets what it returns. Fiber has read the whole body before, except with
// fiber.Config.StreamRequestBody. Then a body of unknown length gets 413, if the key needs it, and the handler finds what was
// read in c.Body(): there is no stream any more.
type Config = httpmw.Settings[fiber.Ctx, func(c fiber.Ctx, p *httpmw.Problem) error]

// New returns the handler. Settings that cannot work are [core.ErrInvalid].
func New(c Config) (fiber.Handler, error) {
	l, err := newLock(c, nil)
	if err != nil {
		return nil, err
	}
	return func(c fiber.Ctx) error { return l.Serve(c, nil, c.Next) }, nil
}

type lock = settings.Lock[request, fiber.Ctx]

func newLock(c Config, fields adapter.Sources[request]) (*lock, error) {
	if c.ErrorHandler == nil {
		c.ErrorHandler = write
	}
	return settings.New(c, fields, settings.Framework[request, fiber.Ctx]{
		Request: func(c fiber.Ctx, bound any) (context.Context, request) { return c.Context(), request{c, bound} },
		Of:      func(r request) fiber.Ctx { return r.c },
		Run:     run, Answer: c.ErrorHandler,
		Known: func(_ fiber.Ctx, err error) bool {
			_, outermost := err.(*fiber.Error) //nolint:errorlint // Fiber would send the text of what it is wrapped in
			return outermost
		},
	})
}
