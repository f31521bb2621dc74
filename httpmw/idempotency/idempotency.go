// Package idempotency gives the answer of a request again when the request is repeated with the same Idempotency-Key.
// So a client whose answer was lost repeats it, and learns how it went.
//
//	mux.Handle("POST /payments", idempotency.Middleware(locks, redisstore.New(rdb), account)(pay))
//
// The first request runs under a lock, and its answer is kept: status, headers and body. What a repeat
// gets:
//
//	the first one has been answered  the same answer, with Idempotent-Replayed: true
//	it still runs                    409, type held; Retry-After
//	it asked for something else      422: another method, host, URL or body
//	it failed, or crashed            it runs again: 5xx, 408, 409, 423, 425, 429, 499, or neither status nor body;
//	                                 also 307 and 308, which send it elsewhere
//	lock service or store silent     503; it does not run
//
// Nothing is hijacked behind it. Put it inside authentication and outside a lock of package httpmw. It is at-least-once: a process that dies after the
// work and before the answer is kept lets a repeat run again. The page docs/guides/idempotency.md compares it
// with others.
package idempotency

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// Header is the request header with the client's key, as in the IETF draft
// "The Idempotency-Key HTTP Header Field". ReplayedHeader marks an answer that is given again.
const (
	Header         = "Idempotency-Key"
	ReplayedHeader = "Idempotent-Replayed"
)

const (
	defaultWindow    = 24 * time.Hour
	defaultMaxAnswer = 1 << 20
	storeTimeout     = 5 * time.Second

	statusClientClosed = 499 // as nginx and gRPC's gateways say that the client has gone
)

// Store keeps answers. Package redisstore has one for Redis, sqlstore one for SQL databases,
// and [MemoryStore] is one for a single process. It is safe for concurrent use.
type Store interface {
	// Load returns what was saved under key, nil if there is nothing or its window is over. Both have 5 seconds.
	Load(ctx context.Context, key string) (answer []byte, err error)
	// Save keeps answer for window. What is there already stays as it is, without an error.
	Save(ctx context.Context, key string, answer []byte, window time.Duration) error
}

// Middleware returns the middleware.
//
// scope says whose keys they are: the account or user that has authenticated. Two callers with the
// same scope and key get each other's answers, so it must never be a value that a client can choose.
// An empty one is refused.
//
// It panics on arguments that cannot work; [New] has all settings and returns an error.
func Middleware(l *core.Locker, store Store, scope func(*http.Request) (string, error)) func(http.Handler) http.Handler {
	return rule.Must[func(http.Handler) http.Handler]("idempotency")(New(Config{Locker: l, Store: store, Scope: scope}))
}

// Config is [Middleware] with all settings. Locker, Store and Scope are required.
type Config struct {
	Locker *core.Locker
	Store  Store

	// Scope says whose keys they are. An error, or "", is answered with 400, and becomes the Problem's
	// Err. It may read the body, and parse a form.
	Scope func(*http.Request) (string, error)

	// Window is how long an answer is kept. Zero means 24 hours, the default.
	Window time.Duration

	// Required refuses requests without a key with 400. By default they pass, and nothing is kept.
	Required bool

	// Applies selects the requests that a key counts for. The default, nil, is POST and PATCH, since
	// other methods are idempotent by themselves.
	Applies func(*http.Request) bool

	// MaxBody limits the body of a request with a key, which is read before the handler runs. A larger
	// one is answered with 413. Zero means 1 MiB, the default.
	MaxBody int64

	// MaxAnswer limits how many bytes of an answer are kept. A repeat of a request with a larger answer,
	// or one that was flushed or has trailers, gets 409, type already-processed. Zero means 1 MiB, the default.
	MaxAnswer int64

	// Options are those of the lock, which is exclusive among all processes, whatever they say. By default the
	// middleware does not wait for the first request.
	Options []core.Option

	// ErrorHandler answers instead of [httpmw.Problem.ServeHTTP], the default.
	ErrorHandler func(http.ResponseWriter, *http.Request, *httpmw.Problem)

	// Logger gets a line for each answer that could not be kept, and one if middleware outside has read a body and not put
	// it back: nobody can tell what such a request asks for, so it gets 500. For nil, the default, it is
	// [slog.Default] at that time.
	Logger *slog.Logger
}

// New returns the middleware. Settings that cannot work are [core.ErrInvalid].
func New(c Config) (func(http.Handler) http.Handler, error) {
	switch {
	case c.Store == nil:
		return nil, fmt.Errorf("%w: no store", core.ErrInvalid)
	case c.Scope == nil:
		return nil, fmt.Errorf("%w: no scope: whose keys are they?", core.ErrInvalid)
	case c.Window < 0 || c.MaxBody < 0 || c.MaxAnswer < 0:
		return nil, fmt.Errorf("%w: a negative Window, MaxBody or MaxAnswer", core.ErrInvalid)
	}
	opts := slices.Concat([]core.Option{core.WithWait(0)}, c.Options,
		[]core.Option{core.WithLimit(1), core.OnUnavailable(core.FailClosed)}) // otherwise two first requests would run
	// Names are sorted: one that begins so comes before those that are locked inside, several of which are waited for only then.
	k, err := adapter.KeyFunc("idempotency:{key}", func(_ context.Context, key string) (string, error) { return "!idempotency:" + key, nil })
	if err != nil {
		return nil, err
	}
	ready, err := adapter.NewRule(c.Locker, k, opts...)
	if err != nil {
		return nil, err
	}
	if window, _ := ready.Locker().Dedup(); window > 0 {
		return nil, fmt.Errorf("%w: not with WithDedup, which would refuse what is to be given again", core.ErrInvalid)
	}
	c.Window, c.MaxBody, c.MaxAnswer = cmp.Or(c.Window, defaultWindow), cmp.Or(c.MaxBody, 1<<20), cmp.Or(c.MaxAnswer, defaultMaxAnswer)
	if c.Applies == nil {
		c.Applies = func(r *http.Request) bool { return r.Method == http.MethodPost || r.Method == http.MethodPatch }
	}
	return func(next http.Handler) http.Handler {
		if next == nil {
			panic("idempotency: nil handler")
		}
		return &idempotent{Config: c, rule: ready, next: next}
	}, nil
}

// idempotent is a handler behind the middleware.
type idempotent struct {
	Config

	rule     *adapter.Rule[string]
	next     http.Handler
	complain sync.Once
}

func (h *idempotent) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if !h.Applies(r) || len(r.Header.Values(Header)) == 0 && !h.Required {
		h.next.ServeHTTP(w, r)
		return
	}
	q, p := h.identify(r)
	if p == nil {
		p = h.once(w, r, q)
	}
	switch {
	case p == nil:
	case h.ErrorHandler != nil:
		h.ErrorHandler(w, r, p)
	default:
		p.ServeHTTP(w, r)
	}
}

// identity is what a request is known by.
type identity struct {
	key         string // of store and lock
	fingerprint string // of what it asks for
}

// identify finds out who asks for what. Scope and handler get the whole body, each for itself.
func (h *idempotent) identify(r *http.Request) (identity, *httpmw.Problem) {
	key, err := idempotencyKey(r.Header.Values(Header))
	if err != nil {
		return identity{}, refusal(httpmw.TypeIdempotencyKey, http.StatusBadRequest, "Idempotency-Key is missing or invalid",
			"The request needs one Idempotency-Key of 1 to 255 visible ASCII characters. It was not started.", err)
	}
	asked, body, err := fingerprint(r, h.MaxBody)
	if errors.Is(err, adapter.ErrMisconfigured) {
		h.complain.Do(func() {
			h.log().LogAttrs(r.Context(), slog.LevelError, "holdfast: requests with an Idempotency-Key fail", slog.Any("error", err))
		})
		return identity{}, httpmw.ProblemOf(adapter.Outcome{Reason: adapter.Misconfigured, Err: err})
	}
	if err != nil {
		return identity{}, httpmw.ProblemOf(adapter.Outcome{Reason: adapter.BadKey, Err: err})
	}
	scope, err := h.scope(r, body)
	if err != nil {
		return identity{}, refusal(httpmw.TypeNobodysKey, http.StatusBadRequest, "Idempotency-Key is nobody's",
			"The server can not tell whose Idempotency-Key this is: it does not know who asks. The request was not started.", err)
	}
	return identity{hash(scope, key), asked}, nil
}

// scope asks whose key it is.
func (h *idempotent) scope(r *http.Request, body []byte) (string, error) {
	if unread := r.Body; len(body) > 0 {
		defer func() { r.Body = unread }()
		r.Body = io.NopCloser(bytes.NewReader(body)) // the scope may parse a form in it
	}
	scope, err := h.Scope(r)
	if err == nil && scope == "" { // somebody who is not known, most likely: strangers would share their keys
		err = errNoScope
	}
	return scope, err
}

// hash is that of several strings, of which none runs into the next.
func hash(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		_, _ = fmt.Fprintf(h, "%d:", len(p)) // a hash never fails
		_, _ = io.WriteString(h, p)
	}
	return hex.EncodeToString(h.Sum(nil))
}

// once runs the handler, or gives again what it has answered. What is kept is looked up under the lock:
// before it a first request could end in between. A repeat that finds the lock held looks all the same,
// since the holder may be another repeat.
func (h *idempotent) once(w http.ResponseWriter, r *http.Request, q identity) *httpmw.Problem {
	var found bool
	var p *httpmw.Problem
	ran := false
	c := &capture{to: w, limit: h.MaxAnswer}
	out := h.rule.Run(r.Context(), q.key, func(ctx context.Context) error {
		if found, p = h.again(ctx, w, q); found || p != nil {
			return nil
		}
		ran = true
		inside := r.WithContext(ctx)
		defer rule.HandBack(r, inside)
		h.next.ServeHTTP(c, inside)
		if lease, ok := core.FromContext(ctx); ok && lease.Err() == nil {
			h.keep(inside, q, c)
		}
		return nil
	})
	switch {
	case ran && (out.Reason != adapter.Lost || c.committed):
		c.end()
		return nil
	case !ran && out.Ran():
		return p
	case out.Reason == adapter.Held:
		if found, p := h.again(r.Context(), w, q); found || p != nil {
			return p
		}
	}
	return httpmw.ProblemOf(out)
}

// again gives a kept answer again, if there is one.
func (h *idempotent) again(ctx context.Context, w http.ResponseWriter, q identity) (found bool, _ *httpmw.Problem) {
	load, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	raw, err := h.Store.Load(load, q.key)
	if err == nil && raw == nil {
		return false, nil
	}
	var a *kept
	if err == nil {
		a, err = decode(raw)
	}
	switch {
	case err != nil:
		return false, httpmw.ProblemOf(adapter.Outcome{Reason: adapter.Unavailable, Err: fmt.Errorf("idempotency store: %w", err)})
	case a.Fingerprint != q.fingerprint:
		return false, refusal(httpmw.TypeKeyReused, http.StatusUnprocessableEntity, "Idempotency-Key was used for another request",
			"An earlier request with this Idempotency-Key asked for something else. This one was not started.", errReused)
	case !a.Whole:
		return false, httpmw.ProblemOf(adapter.Outcome{Reason: adapter.Duplicate, Err: errNotKept})
	}
	a.write(w)
	return true, nil
}

var (
	errNotKept = errors.New("the answer was too large to be kept, flushed, or had trailers")
	errNothing = errors.New("the handler wrote neither a status nor a body")
	errTorn    = errors.New("the body is not as long as its Content-Length says")
	errReused  = errors.New("the Idempotency-Key was used for another request")
)

// refusal is an answer that only this package gives.
func refusal(typ string, status int, title, detail string, err error) *httpmw.Problem {
	return &httpmw.Problem{Type: typ, Status: status, Title: title, Detail: detail, Err: err}
}

// keep saves the answer, still under the lock: a repeat finds the one or the other.
func (h *idempotent) keep(r *http.Request, q identity, c *capture) {
	ctx := r.Context()
	var err error
	switch {
	case c.status == 0, c.bare() && ctx.Err() != nil:
		// To net/http that is an empty 200, and gin says so itself. But it is also what remains of a handler
		// whose framework writes its error later, and of one that has given up because its client is gone.
		err = errNothing
	case !keeps(c.status):
	case r.Method != http.MethodHead && c.torn():
		err = errTorn
	default:
		save, cancel := context.WithTimeout(context.WithoutCancel(ctx), storeTimeout) // also if the client has gone
		defer cancel()
		raw, _ := json.Marshal(c.answer(q.fingerprint)) // strings, a number and bytes: it cannot fail
		err = h.Store.Save(save, q.key, raw, h.Window)
	}
	if err == nil {
		return
	}
	h.log().LogAttrs(ctx, slog.LevelError, "holdfast: the answer of a request with an Idempotency-Key is not kept, a repeat would run again",
		slog.Int("status", c.status), slog.Any("error", err))
}

func (h *idempotent) log() *slog.Logger { return cmp.Or(h.Logger, slog.Default()) }

// keeps says of a status that it is an answer, and no request for another try.
func keeps(status int) bool {
	switch status {
	case http.StatusTemporaryRedirect, http.StatusPermanentRedirect, // to where the client asks with the same key
		http.StatusRequestTimeout, http.StatusConflict, http.StatusLocked, http.StatusTooEarly, http.StatusTooManyRequests, statusClientClosed:
		return false
	}
	return status >= http.StatusOK && status < http.StatusInternalServerError
}
