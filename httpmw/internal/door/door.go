// Package door is what the HTTP doors have in common: from a rule to a lock that is held
// around a handler, or to the reason why it is not.
package door

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/httpmw/internal/observe"
	"github.com/holdfast-go/holdfast/httpmw/internal/reqkey"
)

const defaultMaxBody = 1 << 20

// Rule is what the configurations of all doors have in common.
type Rule struct {
	Locker  *core.Locker
	Key     string
	KeyFunc bool // the door has a key function of its own
	Options []core.Option
	MaxBody int64
	Logger  *slog.Logger
}

// Door is a rule made ready.
type Door struct {
	locker *core.Locker
	keys   *reqkey.Keys // nil: the door has a key function
	tmpl   string       // for observers and logs
	known  sync.Map     // Operation → *core.Locker
	logger *slog.Logger
	logged sync.Map // failing → struct{}
}

// New checks a rule. Its errors are [core.ErrInvalid].
func New(r Rule) (*Door, error) {
	d := &Door{logger: r.Logger}
	if err := d.parse(r); err != nil {
		return nil, err
	}
	opts := []core.Option{core.WithWait(0)}
	if d.keys != nil {
		opts = append(opts, core.WithTemplate(d.tmpl))
	}
	locker, err := r.Locker.With(append(opts, r.Options...)...)
	if err != nil {
		return nil, err
	}
	if window, scope := locker.Dedup(); window > 0 && scope == "" { // of the rule, With or New
		return nil, fmt.Errorf("%w: WithDedup: it needs a WithDedupScope, such as \"ship\", which says what is done once: "+
			"a lock may stand before routes that do several things", core.ErrInvalid)
	}
	d.locker = locker
	d.warn()
	return d, nil
}

func (d *Door) parse(r Rule) error {
	if r.KeyFunc == (r.Key != "") {
		return fmt.Errorf("%w: not exactly one of Key and KeyFunc", core.ErrInvalid)
	}
	if r.MaxBody < 0 {
		return fmt.Errorf("%w: MaxBody %d: negative", core.ErrInvalid, r.MaxBody)
	}
	if r.KeyFunc {
		return nil
	}
	if r.MaxBody == 0 {
		r.MaxBody = defaultMaxBody
	}
	d.tmpl = r.Key
	var err error
	d.keys, err = reqkey.Parse(r.Key, r.MaxBody)
	return err
}

// warn tells of a lock that all requests share, which is seldom what was meant.
func (d *Door) warn() {
	if d.keys == nil || !d.keys.Constant {
		return
	}
	d.log().LogAttrs(context.Background(), slog.LevelWarn,
		"holdfast: the key has no source, so all requests of its routes share one lock", slog.String("key", d.tmpl))
}

func (d *Door) log() *slog.Logger {
	if d.logger != nil {
		return d.logger
	}
	return slog.Default()
}

// Names makes the lock names of a request. params returns what the route has, for the log.
func (d *Door) Names(ctx context.Context, r reqkey.Request, params func() []string) ([]string, *Fault) {
	names, err := d.keys.Names(ctx, r)
	switch {
	case err == nil:
		return names, nil
	case errors.Is(err, reqkey.ErrRoute):
		return nil, d.broken(ctx, r.Route(), &Fault{NoSource, fmt.Errorf("%w; %s", err, reqkey.Has(params()))})
	case errors.Is(err, key.ErrTooLarge):
		return nil, &Fault{TooLarge, err}
	default:
		return nil, &Fault{BadKey, err}
	}
}

// Made is what a key function has made. Its names are checked here, and not left to core,
// because what core refuses later is not the request's fault.
func Made(name string, err error) ([]string, *Fault) {
	if err == nil {
		err = key.CheckName(name)
	}
	if err != nil {
		return nil, &Fault{BadKey, err}
	}
	return []string{name}, nil
}

// failing is what is wrong with a route. Routes are written by the program's author, so they
// are few.
type failing struct {
	route string
	kind  Kind
}

// broken says, once for each route, that the program is at fault and not the request.
func (d *Door) broken(ctx context.Context, route string, fault *Fault) *Fault {
	if _, old := d.logged.LoadOrStore(failing{route, fault.Kind}, struct{}{}); old {
		return fault
	}
	d.log().LogAttrs(ctx, slog.LevelError, "holdfast: requests of this route fail",
		slog.String("route", route), slog.String("key", d.tmpl), slog.Any("error", fault.Err))
	return fault
}

// Do runs a handler while the names are locked. The handler lets seen watch its response, and returns
// its own error, if it has one. Do returns why the handler did not run, or that the lease was
// lost meanwhile: but what has begun to be written is the client's answer, come what may.
func (d *Door) Do(ctx context.Context, o Operation, names []string, handler func(ctx context.Context, seen *observe.Response) error) *Fault {
	var seen observe.Response
	ran := false
	locker, err := d.forOperation(o)
	if err != nil { // what the options find wrong with the route, as core finds it with a request
		return d.refused(ctx, o.Route, err)
	}
	work := func(ctx context.Context) error {
		ran = true
		switch err := handler(ctx, &seen); {
		case err != nil || !seen.Succeeded():
			return errFailed
		case !seen.Written() && ctx.Err() != nil: // a handler that has given up returns, and writes to nobody
			return errFailed
		}
		return nil
	}
	if len(names) == 1 {
		err = locker.Do(ctx, names[0], work)
	} else {
		err = locker.DoAll(ctx, names, work)
	}
	if !ran {
		return d.refused(ctx, o.Route, err)
	}
	// The handler's own errors do not come this way: what is lost is this door's lease.
	if lost, ok := errors.AsType[*core.LostError](err); ok && !seen.Written() {
		seen.Restore()
		return &Fault{Lost, lost}
	}
	return nil
}

// HandBack gives the request outside the multipart form that was parsed inside. The server
// removes the files of such a form, but looks for them in the request that it has made.
func HandBack(outside, inside *http.Request) {
	if outside.MultipartForm == nil && inside.MultipartForm != nil {
		outside.Form, outside.PostForm, outside.MultipartForm = inside.Form, inside.PostForm, inside.MultipartForm
	}
}

var errFailed = errors.New("the handler did not succeed")

// Operation is what a request wants.
type Operation struct{ Method, Route string }

func (o Operation) String() string {
	route := o.Route
	if i := strings.IndexByte(route, ' '); i >= 0 { // net/http's patterns may begin with a method
		route = strings.TrimLeft(route[i:], " \t")
	}
	return o.Method + " " + route
}

// forOperation is the Locker with what can not be known before: the operation, a part of the holder's label. Lockers of
// usual methods are kept: routes are written by the program's author, so they are few. A client can
// make up any number of other methods.
func (d *Door) forOperation(o Operation) (*core.Locker, error) {
	if l, ok := d.known.Load(o); ok {
		return l.(*core.Locker), nil //nolint:forcetypeassert // it has no other values
	}
	l, err := d.locker.With(core.WithOperation(o.String()))
	if err == nil && usual(o.Method) {
		d.known.Store(o, l)
	}
	return l, err
}

func usual(method string) bool {
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
		return true
	default:
		return false
	}
}

func (d *Door) refused(ctx context.Context, route string, err error) *Fault {
	switch kind := KindOf(err); kind {
	case BadKey: // the name is good: what core refuses is how it is to be locked
		return d.broken(ctx, route, &Fault{Unlockable, err})
	case 0:
		return &Fault{Unavailable, err}
	default:
		return &Fault{kind, err}
	}
}
