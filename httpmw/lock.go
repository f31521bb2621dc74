package httpmw

import (
	"net/http"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// Lock returns middleware that holds the lock that key names around a handler. It panics on a key or
// an option that cannot work; [New] returns an error instead.
//
// Use it inside the router, which sets the value of {id}. Around a mux, every request fails if the key
// needs a path parameter. Flushing, hijacking, [http.ResponseController] and copies from
// files work as without it. A panic passes through after the release. If the caller leaves, the
// handler's context ends, and the lock is held until the handler has returned.
//
// An answer that fits into the server's buffer reaches the client after the release. So the client's
// next request finds the lock free. A larger or flushed answer is sent before the release.
func Lock(l *core.Locker, key string, opts ...core.Option) func(http.Handler) http.Handler {
	return rule.Must[func(http.Handler) http.Handler]("httpmw")(New(Config{Locker: l, Key: key, Options: opts}))
}

// Config is [Lock] with all settings.
type Config = Settings[*http.Request, func(w http.ResponseWriter, r *http.Request, p *Problem)]

// New returns the middleware. Settings that cannot work are [core.ErrInvalid].
func New(c Config) (func(http.Handler) http.Handler, error) {
	l, err := newLock(c, nil)
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

func newLock(c Config, fields adapter.Sources[*request]) (*lock, error) {
	s := rule.Settings[*request]{Locker: c.Locker, Key: c.Key, Fields: fields, Options: c.Options, MaxBody: c.MaxBody, Logger: c.Logger}
	if c.KeyFunc != nil {
		s.KeyFunc = func(r *request) (string, error) { return c.KeyFunc(r.R) }
	}
	ready, err := rule.New(s)
	return &lock{c, ready}, err
}
