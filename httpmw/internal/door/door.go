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
	Locker     *core.Locker
	Key        string
	KeyFunc    bool // the door has a key function of its own
	Options    []core.Option
	HeldStatus int
	MaxBody    int64
	Logger     *slog.Logger
}

// Door is a rule made ready.
type Door struct {
	locker *core.Locker
	key    *reqkey.Key // nil: the door has a key function
	tmpl   string
	scoped bool // a dedup marker's scope is the operation
	held   Kind
	logger *slog.Logger
	logged sync.Map // failing → struct{}
}

// New checks a rule. Its errors are [core.ErrInvalid].
func New(r Rule) (*Door, error) {
	d := &Door{tmpl: r.Key, held: Held, logger: r.Logger}
	switch r.HeldStatus {
	case 0, http.StatusConflict:
	case http.StatusLocked:
		d.held = HeldLocked
	default:
		return nil, fmt.Errorf("%w: HeldStatus %d: neither 409 nor 423", core.ErrInvalid, r.HeldStatus)
	}
	if err := d.parse(r); err != nil {
		return nil, err
	}
	opts := []core.Option{core.WithWait(0)}
	if d.key != nil {
		opts = append(opts, core.WithTemplate(r.Key))
	}
	locker, err := r.Locker.With(append(opts, r.Options...)...)
	if err != nil {
		return nil, err
	}
	window, scope := locker.Dedup() // of the rule, With or New
	d.locker, d.scoped = locker, window > 0 && scope == ""
	return d, nil
}

func (d *Door) parse(r Rule) error {
	if r.KeyFunc == (r.Key != "") {
		return fmt.Errorf("%w: exactly one of Key and KeyFunc", core.ErrInvalid)
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
	var err error
	d.key, err = reqkey.Parse(r.Key, r.MaxBody)
	return err
}

// Name makes the lock name of a request.
func (d *Door) Name(r reqkey.Request) (string, *Fault) {
	name, err := d.key.Name(r)
	switch {
	case err == nil:
		return name, nil
	case errors.Is(err, reqkey.ErrRoute):
		return "", d.broken(r.Context(), r.Route, &Fault{NoSource, err})
	default:
		return "", &Fault{BadKey, err}
	}
}

// Made is what a key function has made. Its names are checked here, and not left to core,
// because what core refuses later is not the request's fault.
func Made(name string, err error) (string, *Fault) {
	if err == nil {
		err = key.CheckName(name)
	}
	if err != nil {
		return "", &Fault{BadKey, err}
	}
	return name, nil
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
	logger := d.logger
	if logger == nil {
		logger = slog.Default()
	}
	logger.LogAttrs(ctx, slog.LevelError, "holdfast: requests of this route fail",
		slog.String("route", route), slog.String("key", d.tmpl), slog.Any("error", fault.Err))
	return fault
}

// Do runs a handler while name is locked. The handler lets seen watch its response, and returns
// its own error, if it has one. Do returns why the handler did not run, or that the lease was
// lost meanwhile: but what has begun to be written is the client's answer, come what may.
func (d *Door) Do(r *http.Request, route, name string, handler func(ctx context.Context, seen *observe.Response) error) *Fault {
	var seen observe.Response
	ran := false
	err := d.locker.Do(r.Context(), name, func(ctx context.Context) error {
		ran = true
		if err := handler(ctx, &seen); err != nil || !seen.Succeeded() {
			return errFailed
		}
		return nil
	}, d.perRequest(r.Method, route)...)
	if !ran {
		return d.refused(r.Context(), route, err)
	}
	// The handler's own errors do not come this way: what is lost is this door's lease.
	if lost, ok := errors.AsType[*core.LostError](err); ok && !seen.Written() {
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

// perRequest is what can not be known before: the operation, which is the scope of a dedup
// marker unless somebody has chosen another one.
func (d *Door) perRequest(method, route string) []core.Option {
	if !d.scoped {
		return nil
	}
	if i := strings.IndexByte(route, ' '); i >= 0 { // net/http's patterns may begin with a method
		route = strings.TrimLeft(route[i:], " \t")
	}
	return []core.Option{core.WithDedupScope(method + " " + route)}
}

func (d *Door) refused(ctx context.Context, route string, err error) *Fault {
	switch kind := KindOf(err); kind {
	case Held:
		return &Fault{d.held, err}
	case BadKey: // the name is good: what core refuses is how it is to be locked
		return d.broken(ctx, route, &Fault{Unlockable, err})
	case 0:
		return &Fault{Unavailable, err}
	default:
		return &Fault{kind, err}
	}
}
