package core

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// Lease is one holder's turn of a name. Its methods may be called from any goroutine.
//
// If you got it from Acquire, TryAcquire or Attach, end it once, with [Lease.Release],
// [Lease.Complete], [Lease.Finish] or [Lease.Detach]. After that every method answers locally and
// never asks the backend.
//
// If the acquire has failed, there is no lease. The methods of a nil *Lease return [ErrInvalid] or
// the zero value, and its Context has ended.
type Lease struct {
	tenure *tenure
	cfg    *config // of the call that asked for it
	name   string
	since  clock.Up        // when the turn began
	outer  *Lease          // the innermost lease of the caller's context, or nil
	inside *Lease          // the lease that it has re-entered, or nil
	set    *group          // that it belongs to, or nil
	values context.Context // of the work; set once more as the caller gets the lease, with tenure.mu held
	turn   int32           // of its tenure

	slotted bool // it has the slot of the lease that it has re-entered

	// Protected by tenure.mu.
	ended   bool          // Release, Complete, Finish or Detach was called
	known   bool          // result is valid
	next    *Lease        // in the list of its tenure's leases, until it has ended
	slot    chan struct{} // of size one: full while an inner lease has its turn
	own     *leaseContext // Lease.Context, made when somebody asks for it
	work    *leaseContext // the context of Do
	unlink  func()        // takes that from the caller's context; not with a mutex held, since it calls methods of that
	until   clock.Awake   // the last ValidUntil, once ended or lost
	loss    *LostError    // the reason, if trust ended first
	settled latch         // opened when the result is known
	result  error
}

// group identifies the leases of one AcquireAll.
type group struct {
	whole bool // it has them all; set before anybody else gets one
}

// newLease makes a lease that has no tenure yet. It calls methods of the caller's context, so call
// it without a mutex held.
func newLease(ctx context.Context, c *config, name string) *Lease {
	outer := leaseOf(ctx)
	return &Lease{cfg: c, name: name, outer: outer, values: ctx}
}

// bind gives x a turn of t.
func (x *Lease) bind(t *tenure, turn int32, now clock.Reading) {
	x.tenure, x.turn, x.since = t, turn, now.Up()
}

func (x *Lease) subject() Subject { return x.cfg.subject(x.values, x.name) }

var errNoLease = invalidf("call: no lease: the acquire has failed")

// none says that there is no lease, because the error of an acquire was ignored.
func (x *Lease) none() bool { return x == nil || x.tenure == nil }

// Name returns the name that is locked.
func (x *Lease) Name() string {
	if x.none() {
		return ""
	}
	return x.name
}

// Fence returns the fencing token of this turn. It is larger than that of every earlier turn of the
// name. A holder can be paused and not know that its lease is over. A resource is safe from it only
// if it remembers the largest fence that it has seen, and refuses smaller ones.
//
// Fence returns 0 if there is no fencing token: the lease is [Lease.Degraded], it is one of a
// semaphore, or the backend mints none. [FenceFor] returns an error in these cases.
func (x *Lease) Fence() uint64 {
	if x.none() {
		return 0
	}
	return x.tenure.fenceOf(x.turn)
}

// ValidUntil returns when trust in the lease ends unless it is renewed, or when it has ended. It is never later than the
// time at which the backend lets others have the name, as long as the rates of the clocks differ by
// less than one percent. A degraded lease needs no renewal: for it, ValidUntil is ten years after
// the acquire, or about one TTL [WithoutRenewal].
func (x *Lease) ValidUntil() time.Time {
	if x.none() {
		return time.Time{}
	}
	t := x.tenure
	t.mu.Lock()
	defer t.mu.Unlock()
	if x.ended || x.loss != nil {
		return t.engine.clock.Time(x.until)
	}
	return t.engine.clock.Time(t.validUntil())
}

// Degraded says that the lease excludes others in this process only, because the lock service could
// not answer when it was acquired: see [OnUnavailable]. It never changes during the lease.
//
// A degraded lease has no TTL and no fence. It ends by its release, by [WithMaxHold], by Close, and
// [WithoutRenewal] after about one TTL. Its release sends nothing, and [Confirm] trusts it. A
// re-entry joins it, whatever policy the re-entry has.
func (x *Lease) Degraded() bool {
	return !x.none() && x.tenure.local
}

// Context returns the lease's own context. It has the values of the context that was given to
// Acquire, but neither its deadline nor its cancellation. It ends when the lease does. Then
// context.Cause is context.Canceled after a release, a *[LostError] after a loss, and [ErrClosed]
// once the Locker is closed.
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

// workContext returns a context that ends with the caller's or with the lease. One of the standard library's is between
// the two: the end of the lease, which a mutex and the watchdog's tick are waiting for, calls no method of the caller's.
func (x *Lease) workContext() context.Context {
	under, unlink := context.WithCancel(x.values)
	t := x.tenure
	t.mu.Lock()
	defer t.mu.Unlock()
	x.work, x.unlink = x.derive(under), unlink
	return x.work
}

// derive makes a context of the lease from parent. The caller holds the mutex.
func (x *Lease) derive(parent context.Context) *leaseContext {
	ctx, end := context.WithCancelCause(parent)
	if cause := x.cause(); cause != nil {
		end(cause)
	}
	return &leaseContext{ctx, x, end}
}

// cause is why the lease's contexts have ended, or nil. The caller holds the mutex.
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

// endContexts ends the contexts of the lease. The first cause stays. The caller holds the mutex.
func (x *Lease) endContexts(cause error) {
	if x.own != nil {
		x.own.end(cause)
	}
	if x.work != nil {
		x.work.end(cause)
	}
}

type leaseKey struct{}

// FromContext returns the innermost lease that ctx stands under. A context stands under a lease if
// it is the context of Do, DoValue, Wrap or a door, or [Lease.Context], or is derived from one of
// these. The lease may have ended since; [Lease.Err] tells.
func FromContext(ctx context.Context) (*Lease, bool) {
	x, ok := ctx.Value(leaseKey{}).(*Lease)
	return x, ok
}

// leaseOf is FromContext for this package. It returns nil if there is none.
func leaseOf(ctx context.Context) *Lease {
	x, _ := FromContext(ctx)
	return x
}

// FenceFor returns the fencing token of the lease of name that ctx stands under. Leases of other
// names in between do not matter; of several leases of name, the innermost one counts. The result
// is never 0 without an error.
//
// The error is [ErrInvalid] if ctx stands under no lease of name, or if that lease has no fence
// because it is one of a semaphore or the backend mints none. It is [ErrUnavailable] if the lease
// is [Lease.Degraded].
func FenceFor(ctx context.Context, name string) (uint64, error) {
	x := leaseOf(ctx)
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

// Value returns the lease for leaseKey, and the parent's value for all other keys.
func (c *leaseContext) Value(key any) any {
	if key == (leaseKey{}) {
		return c.lease
	}
	return c.Context.Value(key)
}

// Err returns nil as long as the lease may be trusted. After that it returns a *[LostError] with
// the reason, or [ErrReleased] if the lease has ended by its own release. It does no I/O.
//
// The lease can still end between the call of Err and what follows it. Err makes that window small;
// only a fence closes it.
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

// lost says of a lease that has ended whether it was lost before it could be given back.
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

// Format prints the lease's name and fence for every verb. It prints no token, so the output may be
// logged.
func (x *Lease) Format(f fmt.State, _ rune) {
	if x.none() {
		_, _ = io.WriteString(f, "lease(none)") // as below
		return
	}
	_, _ = fmt.Fprintf(f, "lease(%q, fence %d)", x.name, x.Fence()) // fmt has no way to return the error
}
