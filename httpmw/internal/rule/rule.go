// Package rule is what the HTTP middleware has in common: from its settings to a handler that runs under its
// lock, or to the reason why it does not.
package rule

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw/internal/observe"
)

const defaultMaxBody = 1 << 20

// Settings are what all configurations have in common.
type Settings[R Request] struct {
	Locker  *core.Locker
	Key     string
	KeyFunc func(R) (string, error)
	Fields  adapter.Sources[R] // of Bind; nil: the sources of a request
	Options []core.Option
	MaxBody int64
	Logger  *slog.Logger
}

// Rule is settings made ready.
type Rule[R Request] struct {
	rule   *adapter.Rule[R]
	key    string // for logs
	logger *slog.Logger
	logged sync.Map // the routes that fail
}

// New checks the settings. Its errors are [core.ErrInvalid].
func New[R Request](s Settings[R]) (*Rule[R], error) {
	k, constant, err := s.compile()
	if err != nil {
		return nil, err
	}
	rule, err := adapter.NewRule(s.Locker, k, append([]core.Option{core.WithWait(0)}, s.Options...)...)
	if err != nil {
		return nil, err
	}
	if window, scope := rule.Locker().Dedup(); window > 0 && scope == "" { // of the rule, With or New
		return nil, fmt.Errorf("%w: WithDedup: it needs a WithDedupScope, such as \"ship\", which says what is done once: "+
			"a lock may stand before routes that do several things", core.ErrInvalid)
	}
	r := &Rule[R]{rule: rule, key: s.Key, logger: s.Logger}
	if constant { // seldom what was meant
		r.log().LogAttrs(context.Background(), slog.LevelWarn,
			"holdfast: the key has no source, so all requests of its routes share one lock", slog.String("key", s.Key))
	}
	return r, nil
}

// foreign is a parameter as routers have it. Here it would be text, and all requests of its route would share one lock.
var foreign = regexp.MustCompile(`(?:^|[/: ]):[\pL_]|<[\pL_]`)

func (s Settings[R]) compile() (k adapter.Key[R], constant bool, err error) {
	switch {
	case s.Fields != nil && s.KeyFunc != nil:
		return k, false, fmt.Errorf("%w: Bind with a KeyFunc: its key is a template with fields of the request", core.ErrInvalid)
	case (s.KeyFunc != nil) == (s.Key != ""):
		return k, false, fmt.Errorf("%w: not exactly one of Key and KeyFunc", core.ErrInvalid)
	case s.MaxBody < 0:
		return k, false, fmt.Errorf("%w: MaxBody %d: negative", core.ErrInvalid, s.MaxBody)
	case foreign.MatchString(s.Key):
		return k, false, fmt.Errorf("%w: key %q: a source stands between braces: {id|int}, {id|uuid} or {id|text}", core.ErrInvalid, s.Key)
	case s.KeyFunc != nil:
		k, err = adapter.KeyFunc("", func(_ context.Context, r R) (string, error) {
			n, err := s.KeyFunc(r)
			return strings.Clone(n), err // Fiber reuses the memory of its strings, and the name outlives the handler
		})
		return k, false, err
	}
	from, constant := s.Fields, true
	if from == nil {
		from = sources[R](cmp.Or(s.MaxBody, defaultMaxBody))
	}
	k, err = adapter.NewKey(s.Key, func(name string) (adapter.Source[R], error) {
		constant = false
		return from(name)
	})
	return k, constant, err
}

// Fields are the sources of Bind: the fields of the T that a request was decoded to.
func Fields[R Request, T any]() adapter.Sources[R] {
	return adapter.Of(adapter.Fields[T](), func(r R) *T {
		t, _ := r.Bound().(*T)
		return t
	})
}

func (r *Rule[R]) log() *slog.Logger { return cmp.Or(r.logger, slog.Default()) }

// errFailed stands for an answer that says so.
var errFailed = errors.New("the handler did not succeed")

// Run runs a handler under the locks of req. The handler lets seen watch its response, and returns its own error, if it
// has one. A loss counts only while nothing is written: what has begun is the client's answer, come what may.
func (r *Rule[R]) Run(ctx context.Context, req R, handler func(ctx context.Context, seen *observe.Response) error) adapter.Outcome {
	var seen observe.Response
	var own error
	at := req.Operation()
	out := r.rule.Run(ctx, req, func(ctx context.Context) error {
		own = handler(ctx, &seen)
		gaveUp := !seen.Written() && ctx.Err() != nil // it returns, and writes to nobody
		if own != nil || gaveUp || !seen.Succeeded() {
			return errFailed
		}
		return nil
	}, core.WithOperation(at.String()))
	out.Own = own
	switch {
	case out.Reason == adapter.Misconfigured:
		r.complain(ctx, at.Route, out.Err)
	case out.Reason == adapter.Lost && seen.Written():
		out.Reason, out.Err = adapter.Done, nil
	case out.Reason == adapter.Lost:
		seen.Restore()
	}
	return out
}

// complain says, once for each route, that the program is at fault and not the request. Routes are written by the program's
// author, so they are few.
func (r *Rule[R]) complain(ctx context.Context, route string, err error) {
	if _, old := r.logged.LoadOrStore(route, struct{}{}); old {
		return
	}
	r.log().LogAttrs(ctx, slog.LevelError, "holdfast: requests of this route fail",
		slog.String("route", route), slog.String("key", r.key), slog.Any("error", err))
}

// HandBack gives the request outside the multipart form that was parsed inside. The server
// removes the files of such a form, but looks for them in the request that it has made.
func HandBack(outside, inside *http.Request) {
	if outside.MultipartForm == nil && inside.MultipartForm != nil {
		outside.Form, outside.PostForm, outside.MultipartForm = inside.Form, inside.PostForm, inside.MultipartForm
	}
}

// Must is for constructors that panic, with the name of their package.
func Must[T any](pkg string) func(T, error) T {
	return func(v T, err error) T {
		if err != nil {
			panic(pkg + ": " + err.Error())
		}
		return v
	}
}

// Operation is what a request wants.
type Operation struct{ Method, Route string }

func (o Operation) String() string {
	route := o.Route
	if i := strings.IndexByte(route, ' '); i >= 0 { // net/http's patterns may begin with a method
		route = strings.TrimLeft(route[i:], " \t")
	}
	return o.Method + " " + route
}
