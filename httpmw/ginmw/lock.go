package ginmw

import (
	"context"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
	"github.com/holdfast-go/holdfast/httpmw/internal/settings"
)

// Lock returns a handler that holds the lock that key names around the handlers after it. It panics on
// a key or an option that cannot work; [New] returns an error instead. Answers, panics
// and callers that leave are handled as in [httpmw.Lock].
//
// Use it on routes. In Engine.Use, requests that match no route have no parameters. If the key needs
// one, such requests get 500, unless Config.Skipper lets them pass.
func Lock(l *core.Locker, key string, opts ...core.Option) gin.HandlerFunc {
	return rule.Must[gin.HandlerFunc]("ginmw")(New(Config{Locker: l, Key: key, Options: opts}))
}

// Config is [Lock] with all settings.
//
// An ErrorHandler may also leave an error in c for a handler outside. The chain is aborted in any case.
type Config = httpmw.Settings[*gin.Context, func(c *gin.Context, p *httpmw.Problem)]

// New returns the handler. Settings that cannot work are [core.ErrInvalid].
func New(c Config) (gin.HandlerFunc, error) {
	l, err := newLock(c, nil)
	if err != nil {
		return nil, err
	}
	return func(c *gin.Context) {
		_ = l.Serve(c, nil, func() error { // no handler of gin returns an error
			c.Next() // here, and not after the lock is released
			return nil
		})
	}, nil
}

type lock = settings.Lock[*request, *gin.Context]

func newLock(c Config, fields adapter.Sources[*request]) (*lock, error) {
	answer := c.ErrorHandler
	if answer == nil {
		answer = func(c *gin.Context, p *httpmw.Problem) { p.ServeHTTP(c.Writer, c.Request) }
	}
	return settings.New(c, fields, settings.Framework[*request, *gin.Context]{
		Request: func(c *gin.Context, bound any) (context.Context, *request) {
			return c.Request.Context(), &request{rule.HTTP{R: c.Request, Decoded: bound}, c}
		},
		Of:    func(r *request) *gin.Context { return r.c },
		Run:   run,
		Known: func(*gin.Context, error) bool { return false },
		Answer: func(c *gin.Context, p *httpmw.Problem) error {
			c.Abort()
			answer(c, p)
			return nil
		},
	})
}
