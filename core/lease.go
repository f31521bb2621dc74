package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// Lease is one holder's turn of a name. Its methods may be called from any goroutine.
//
// Whoever got it from Acquire, TryAcquire or Attach ends it, once, with [Lease.Release],
// [Lease.Complete] or [Lease.Finish]. After that every method answers locally and never touches the backend.
//
// There is none where the acquire has failed: the methods of a nil *Lease answer [ErrInvalid], or
// the zero value, and its Context has ended.
type Lease struct {
	tenure *tenure
	cfg    *config // of the call that it was asked for with
	name   string
	since  clock.Up // when the turn began
	outer  *Lease   // the innermost lease that its context stood under, or nil
	inside *Lease   // the lease that it has re-entered, or nil
	set    *group   // of leases that it belongs to, or nil
	values context.Context
	turn   int32 // of its tenure

	// Protected by tenure.mu.
	ended   bool          // Release, Complete, Finish or Detach was called
	known   bool          // result is what the end came to
	next    *Lease        // among those of its tenure, until it has ended
	slot    chan struct{} // of size one: full while an inner lease has its turn
	own     *leaseContext // Lease.Context, made when somebody asks for it
	work    *leaseContext // the context of Do
	until   clock.Awake   // the last of ValidUntil, once ended
	loss    *LostError    // why, if trust ended first
	settled latch         // opened when the result is known
	result  error
}

// group stands for the leases that one AcquireAll has got.
type group struct{ _ byte }

// newLease makes a lease that has no tenure yet. It asks the caller's context, so it is not
// for where a mutex is held.
func newLease(ctx context.Context, c *config, name string) *Lease {
	outer, _ := FromContext(ctx)
	return &Lease{cfg: c, name: name, outer: outer, values: ctx}
}

// bind gives x a turn of t.
func (x *Lease) bind(t *tenure, turn int32, now clock.Reading) {
	x.tenure, x.turn, x.since = t, turn, now.Up()
}

func (x *Lease) subject() Subject { return x.cfg.subject(x.values, x.name) }

var errNoLease = invalidf("call: no lease: the acquire has failed")

// none says that there is no lease: the error of an acquire was ignored.
func (x *Lease) none() bool { return x == nil || x.tenure == nil }

// Name returns the name that is locked.
func (x *Lease) Name() string {
	if x.none() {
		return ""
	}
	return x.name
}

// Fence returns the fencing token of this turn: a number larger than that of every earlier turn of the
// name. A resource that remembers the largest one it has seen, and refuses smaller ones, is safe from a
// holder that was paused and does not know that its lease is over. Nothing else is.
//
// It is 0 where there is none: the lease is [Lease.Degraded], or it is one of a semaphore, or the backend
// mints no fences. [FenceFor] has an error for each of them.
func (x *Lease) Fence() uint64 {
	if x.none() {
		return 0
	}
	return x.tenure.fenceOf(x.turn)
}

// ValidUntil returns when trust in the lease ends unless it is renewed. It is never later than
// the time at which the backend lets others have the name, as long as clocks run
// at rates within one percent of each other. A degraded lease needs no renewal: it is ten years from when
// it was acquired, or, [WithoutRenewal], about a TTL.
func (x *Lease) ValidUntil() time.Time {
	if x.none() {
		return time.Time{}
	}
	t := x.tenure
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.ended {
		return t.engine.clock.Time(x.until)
	}
	return t.engine.clock.Time(t.validUntil())
}

// Degraded says that the lease excludes others in this process only, since the lock service
// could not answer when it was acquired: see [OnUnavailable]. It stays so until its end.
func (x *Lease) Degraded() bool {
	return !x.none() && x.tenure.local
}

// Context returns the lease's own context. It has the values of the context that was given
// to Acquire, but neither its deadline nor its cancellation. It ends when the lease does:
// context.Cause is context.Canceled after a release, a *[LostError] after a loss, and
// [ErrClosed] once the Locker is closed.
func (x *Lease) Context() context.Context {
	if x.none() {
		ctx, end := context.WithCancelCause(context.Background())
		end(errNoLease)
		return ctx
	}
	t := x.tenure
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.own == nil {
		x.own = x.derive(context.WithoutCancel(x.values))
	}
	return x.own
}

// workContext returns a context that ends with the caller's or with the lease.
func (x *Lease) workContext(ctx context.Context) context.Context {
	t := x.tenure
	t.mu.Lock()
	defer t.mu.Unlock()
	x.work = x.derive(ctx)
	return x.work
}

func (x *Lease) derive(parent context.Context) *leaseContext {
	ctx, end := context.WithCancelCause(parent)
	if cause := x.cause(); cause != nil {
		end(cause)
	}
	return &leaseContext{ctx, x, end}
}

// cause is why the lease's contexts have ended, nil if they have not.
func (x *Lease) cause() error {
	switch {
	case x.loss != nil:
		return x.loss
	case x.ended:
		return context.Canceled
	case x.tenure.engine.closed():
		return ErrClosed
	default:
		return nil
	}
}

// endContexts ends the contexts of the lease; the first cause stays.
func (x *Lease) endContexts(cause error) {
	if x.own != nil {
		x.own.end(cause)
	}
	if x.work != nil {
		x.work.end(cause)
	}
}

type leaseKey struct{}

// FromContext returns the innermost lease that ctx stands under: the context of Do,
// DoValue, Wrap and the doors, of [Lease.Context], and of everything derived from them.
// The lease may have ended since; [Lease.Err] tells.
func FromContext(ctx context.Context) (*Lease, bool) {
	x, ok := ctx.Value(leaseKey{}).(*Lease)
	return x, ok
}

// FenceFor returns the fencing token of the lease of name that ctx stands under: of the innermost one,
// also where locks are nested. It is never 0 without an error. The error is [ErrInvalid] if ctx stands under
// no lease of name, or that has no fence, as where it is one of a semaphore or the backend mints none; and
// [ErrUnavailable] if it is [Lease.Degraded].
func FenceFor(ctx context.Context, name string) (uint64, error) {
	x, _ := FromContext(ctx)
	for x != nil && x.name != name {
		x = x.outer
	}
	switch {
	case x == nil:
		return 0, invalidf("fence of %q: the context stands under no lease of that name", name)
	case x.tenure.local:
		return 0, &unavailableError{"fence", name, errDegraded}
	case x.Fence() == 0:
		return 0, invalidf("fence of %q: it has none, as it is of a semaphore, or the %s backend mints none", name, x.tenure.engine.can.Backend)
	default:
		return x.Fence(), nil
	}
}

// leaseContext is a context that knows its lease.
type leaseContext struct {
	context.Context // made by context.WithCancelCause, so that children attach to it directly
	lease           *Lease
	end             context.CancelCauseFunc
}

// Value answers for the lease, and else for the parent.
func (c *leaseContext) Value(key any) any {
	if key == (leaseKey{}) {
		return c.lease
	}
	return c.Context.Value(key)
}

// Err does no I/O. It returns nil as long as the lease may be trusted. After that it is a *[LostError]
// that says why not, or [ErrReleased] after the lease's own end. Between a call of Err and what follows,
// the lease can end: Err narrows the window, and only a fence closes it.
func (x *Lease) Err() error {
	if x.none() {
		return errNoLease
	}
	t := x.tenure
	var lost *LostError
	var ended bool
	t.locked(t.engine.clock.Read(), func() { lost, ended = x.loss, x.ended }) // the watchdog's timer may be late
	switch {
	case lost != nil:
		return lost
	case ended:
		return ErrReleased
	default:
		return nil
	}
}

func (x *Lease) live() bool { return x.Err() == nil }

// lost says whether a lease that has ended was lost before it could be given back.
func (x *Lease) lost() bool {
	x.tenure.mu.Lock()
	defer x.tenure.mu.Unlock()
	return x.loss != nil
}

func (x *Lease) over() bool {
	x.tenure.mu.Lock()
	defer x.tenure.mu.Unlock()
	return x.ended
}

// Check asks the backend whether the lease still stands. It returns nil, a *[LostError],
// or [ErrUnavailable] if there was no answer within a fifth of the TTL, at most 2 s, and
// at most until the lease ends; if ctx ends first, its error. It does not prolong the
// lease. Of a degraded lease the backend knows nothing: the answer is ErrUnavailable, and
// nothing is sent.
func (x *Lease) Check(ctx context.Context) error {
	if x.none() {
		return errNoLease
	}
	t := x.tenure
	if lost := x.Err(); lost != nil {
		return lost
	}
	if err := ctx.Err(); err != nil {
		return &endedError{err, &unavailableError{"check", x.name, errNotAsked}}
	}
	if t.local {
		return &unavailableError{"check", x.name, errDegraded}
	}
	t.mu.Lock()
	if t.state != tenureHeld || x.ended {
		t.mu.Unlock()
		return x.Err()
	}
	t.inFlight++
	t.mu.Unlock()
	err := t.check(ctx)
	if lost := x.Err(); lost != nil {
		return lost
	}
	return err
}

func (t *tenure) check(ctx context.Context) error {
	claim := t.token.claim()
	claim.TTL = 0
	bounded, cancel := context.WithTimeout(ctx, min(t.cfg.renewTimeout(), t.left()))
	defer cancel()
	answers, ok := callApart(bounded, t.engine, func(ctx context.Context) []error {
		return t.engine.driver.Renew(ctx, []driver.Claim{claim})
	}, nil)
	err := errNoAnswer
	if ok && len(answers) == 1 {
		err = answers[0]
	}
	now := t.engine.clock.Read()
	t.locked(now, func() {
		t.landed()
		if errors.Is(err, driver.ErrNotOwner) {
			t.lose(ReasonTaken, now)
		}
	})
	if err == nil {
		return nil
	}
	err = &unavailableError{"check", claim.Name, opaque(err)}
	if ctx.Err() != nil {
		return &endedError{ctx.Err(), err}
	}
	return err
}

// Format prints the lease's name and fence for every verb: what is printed may be logged.
func (x *Lease) Format(f fmt.State, _ rune) {
	if x.none() {
		_, _ = io.WriteString(f, "lease(none)") // as below
		return
	}
	_, _ = fmt.Fprintf(f, "lease(%q, fence %d)", x.name, x.Fence()) // fmt has no way to return the error
}
