package ginmw

import (
	"log/slog"

	"github.com/gin-gonic/gin"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// Lock returns a handler that holds the lock that key names around the handlers after it. It panics on
// a key or an option that cannot work; [Config.ToHandler] returns an error instead. Answers, panics
// and callers that leave are handled as in [httpmw.Lock].
//
// Use it on routes. In Engine.Use, requests that match no route have no parameters. If the key needs
// one, such requests get 500, unless Config.Skipper lets them pass.
func Lock(l *core.Locker, key string, opts ...core.Option) gin.HandlerFunc {
	h, err := Config{Locker: l, Key: key, Options: opts}.ToHandler()
	if err != nil {
		panic("ginmw: " + err.Error())
	}
	return h
}

// Config is [Lock] with all settings. Locker and one of Key and KeyFunc are required. What is not
// explained here is as in [httpmw.Config].
type Config struct {
	Locker *core.Locker

	// Key is the template of the lock's name, with the sources of [httpmw.Config]. A path parameter
	// is c.Param.
	Key string
	// KeyFunc makes the lock's name, where no template can. (*key.Key).Name makes a valid name from
	// any values. An error is answered with 400, and becomes the Problem's Err.
	KeyFunc func(c *gin.Context) (string, error)

	// Options are those of the lock. ToHandler checks them once. Without [core.WithWait] among them,
	// the handler does not wait.
	Options []core.Option

	// Skipper selects requests that pass without a lock. The default, nil, selects none.
	Skipper func(c *gin.Context) bool

	// MaxBody limits how many bytes of a body are read for {body:…}. Zero means 1 MiB, the default.
	MaxBody int64

	// ErrorHandler answers instead of [httpmw.Problem.ServeHTTP], the default. It has to write an
	// answer, or to leave an error in c for a handler outside. The chain is aborted in any case.
	ErrorHandler func(c *gin.Context, p *httpmw.Problem)

	// Logger gets one line for each route whose requests fail because of the program, not the request.
	// For nil, the default, it is [slog.Default] at that time.
	Logger *slog.Logger
}

// ToHandler returns the handler. Settings that cannot work are [core.ErrInvalid].
func (c Config) ToHandler() (gin.HandlerFunc, error) {
	l, err := c.lock(nil)
	if err != nil {
		return nil, err
	}
	return func(c *gin.Context) { l.serve(c, nil, c.Next) }, nil
}

func (c Config) lock(fields adapter.Sources[*request]) (*lock, error) {
	s := rule.Settings[*request]{Locker: c.Locker, Key: c.Key, Fields: fields, Options: c.Options, MaxBody: c.MaxBody, Logger: c.Logger}
	if c.KeyFunc != nil {
		s.KeyFunc = func(r *request) (string, error) { return c.KeyFunc(r.c) }
	}
	ready, err := rule.New(s)
	return &lock{c, ready}, err
}
