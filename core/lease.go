package core

import (
	"context"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
	"github.com/holdfast-go/holdfast/core/internal/term"
)

// Lease is one holder's turn of a name. Its methods may be called from any goroutine.
//
// If you got it from Acquire, TryAcquire or Attach, end it once, with [Lease.Release], [Lease.Complete],
// [Lease.Finish] or [Lease.Detach]. After that every method answers locally and never asks the backend.
//
// If the acquire has failed, there is no lease. The methods of a nil *Lease return [ErrInvalid] or the zero value, and
// its Context has ended.
type Lease struct {
	engine *engine
	cfg    *config   // of the call that asked for it
	want   hold.Want // in it is its name
	hold   *hold.Hold
	fence  uint64
	since  clock.Up     // when it began
	above  *ancestors   // nil for most
	work   leaseContext // of Do; its parent is set once more as the caller gets the lease

	mu      sync.Mutex  // of a root, protects the fields below of all leases that have re-entered it, too; a leaf
	ended   bool        // by Release, Complete, Finish or Detach
	told    bool        // observers know that it has begun
	stopped bool        // of a root: it was lost; whoever tells of its begin tells of that, too
	shut    bool        // the Locker was closed
	known   bool        // result is valid
	mark    bool        // of a root: the work is finished
	out     bool        // it has ended, and so have its contexts
	until   clock.Awake // the last ValidUntil, once ended or lost
	loss    *LostError  // the reason, if trust ended first
	more    *more       // made when something of it is needed; one that has re-entered another has it from the beginning
}

// more is what few leases need: a process can hold very many.
type more struct {
	own     *leaseContext // Lease.Context, made when somebody asks for it
	settled chan struct{} // closed when the result is known; nil if nobody waits
	result  error         // nil if there is no more

	inside *Lease        // the lease that it has re-entered, or nil
	within int32         // how many that have re-entered it are open
	turn   chan struct{} // that one's slot, if it has it
	slot   chan struct{} // of size one: full while an inner lease has its turn
	inners *Lease        // of a root: those that have re-entered it, linked by next
	next   *Lease
}

// rare is what few leases need, to be written to. The caller holds the mutex.
func (x *Lease) rare() *more {
	if x.more == nil {
		x.more = new(more)
	}
	return x.more
}

// seen is what few leases need, to be read. The caller holds the mutex.
func (x *Lease) seen() *more {
	if x.more == nil {
		return new(more)
	}
	return x.more
}

// group identifies the leases of one AcquireAll.
type group struct {
	whole atomic.Bool // it has them all
	marks bool        // its first lease leaves a marker for all of them
}

// newLease makes a lease that has no hold yet. It calls methods of the caller's context, so call it without a mutex held.
func newLease(ctx context.Context, r *engine, c *config, name string) *Lease {
	x := &Lease{engine: r, cfg: c}
	x.want = hold.Want{Terms: &c.Terms, Name: name, Work: (*work)(x)}
	if outer := leaseOf(ctx); outer != nil {
		x.above = &ancestors{outer: outer}
	}
	x.work.lease, x.work.parent = x, ctx
	return x
}

// got says that x has h.
func (x *Lease) got(h *hold.Hold) {
	t := h.Term()
	x.hold, x.fence, x.since = h, t.Fence(), t.Begun()
}

// work is what a hold knows of a lease.
type work Lease

// Stop implements hold.Work.
func (w *work) Stop(why term.Loss) { (*Lease)(w).lose(reasonOf(why)) }

// Values implements hold.Work.
func (w *work) Values() context.Context { return (*Lease)(w).values() }

// values is the context of the work, for its values.
func (x *Lease) values() context.Context {
	x.root().mu.Lock()
	defer x.root().mu.Unlock()
	return x.work.parent
}

func reasonOf(why term.Loss) Reason {
	switch why {
	case term.Taken:
		return ReasonTaken
	case term.MaxHold:
		return ReasonMaxHold
	case term.Unreachable:
		return ReasonUnreachable
	default:
		return ReasonExpired
	}
}

// lose ends trust in x, and in those that have re-entered it. It is told once.
func (x *Lease) lose(why Reason) {
	now := x.engine.clock.Now()
	x.mu.Lock()
	if x.loss != nil {
		x.mu.Unlock()
		return
	}
	lost := &LostError{x.want.Name, why}
	var ends []*leaseContext
	for y := x; y != nil; y = y.after(x) {
		if !y.ended {
			y.loss, y.until = lost, now
			ends = y.contexts(ends)
		}
	}
	x.loss, x.stopped = lost, true // also if it has ended, and what has re-entered it has not
	told := x.told
	x.mu.Unlock()
	end(ends, lost)
	if told {
		x.tellLost(why)
	}
}

// contexts appends those contexts of x that somebody has asked for. The caller holds the mutex.
func (x *Lease) contexts(ends []*leaseContext) []*leaseContext {
	if own := x.seen().own; own != nil && own.made.Load() != nil {
		ends = append(ends, own)
	}
	if x.work.made.Load() != nil {
		ends = append(ends, &x.work)
	}
	return ends
}

// end ends contexts. The first cause stays.
func end(contexts []*leaseContext, cause error) {
	for _, c := range contexts {
		c.made.Load().end(cause)
	}
}

// closed ends the contexts of x, and of those that have re-entered it: the Locker is closed.
func (x *Lease) closed() {
	x.mu.Lock()
	var ends []*leaseContext
	for y := x; y != nil; y = y.after(x) {
		y.shut = true
		ends = y.contexts(ends)
	}
	x.mu.Unlock()
	end(ends, ErrClosed)
}

// after is the next one of root and those that have re-entered it. The caller holds the mutex.
func (x *Lease) after(root *Lease) *Lease {
	if x == root {
		return root.seen().inners
	}
	return x.more.next
}

func (x *Lease) event(kind EventKind) Event {
	e := x.cfg.event(x.values(), kind, x.want.Name)
	e.Degraded = x.Degraded()
	return e
}

func (x *Lease) held() time.Duration { return x.engine.clock.Read().Up().Sub(x.since) }

func (x *Lease) tellLost(why Reason) {
	if x.engine.observes(EventLost) {
		e := x.event(EventLost)
		e.Reason, e.Held = why, x.held()
		x.engine.tell(e)
	}
}

var errNoLease = invalidf("call: no lease: the acquire has failed")

// none says that there is no lease, because the error of an acquire was ignored.
func (x *Lease) none() bool { return x == nil || x.hold == nil }

// Name returns the name that is locked.
func (x *Lease) Name() string {
	if x.none() {
		return ""
	}
	return x.want.Name
}

// Fence returns the fencing token of this turn. It is larger than that of every earlier turn of the
// name. A holder can be paused and not know that its lease is over. A resource is safe from it only
// if it remembers the largest fence that it has seen, and refuses smaller ones.
//
// Fence returns 0 if there is no fencing token: the lease is [Lease.Degraded], it is one of a semaphore, or the backend mints
// none. [FenceFor] returns an error in these cases.
func (x *Lease) Fence() uint64 {
	if x.none() {
		return 0
	}
	return x.fence
}

// ValidUntil returns when trust in the lease ends unless it is renewed, or when it has ended. It is never later than the
// time at which the backend lets others have the name, as long as the rates of the clocks differ by less than one percent. A
// degraded lease needs no renewal: for it, ValidUntil is about ten years after the acquire, or one TTL [WithoutRenewal].
func (x *Lease) ValidUntil() time.Time {
	if x.none() {
		return time.Time{}
	}
	now := x.engine.clock.Now()
	until := now.Add(x.hold.Remaining(now))
	x.root().mu.Lock()
	defer x.root().mu.Unlock()
	if x.ended || x.loss != nil {
		until = x.until
	}
	return x.engine.clock.Time(until)
}

// Degraded says that the lease excludes others in this process only, because the lock service could
// not answer when it was acquired: see [OnUnavailable]. It never changes during the lease.
//
// A degraded lease has no TTL and no fence. It ends by its release, by [WithMaxHold], by Close, and
// [WithoutRenewal] after about one TTL. Its release sends nothing, [Confirm] trusts it, and it cannot be detached. A
// re-entry joins it, whatever policy the re-entry has.
func (x *Lease) Degraded() bool { return !x.none() && x.hold.Claim.Outage() != nil }

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
	x.root().mu.Lock()
	defer x.root().mu.Unlock()
	r := x.rare()
	if r.own == nil {
		r.own = &leaseContext{lease: x, parent: context.WithoutCancel(x.work.parent)}
	}
	return r.own
}

// workContext returns a context that ends with the caller's or with the lease.
func (x *Lease) workContext() context.Context { return &x.work }

// cause is why the lease's contexts have ended, or nil. The caller holds the mutex.
func (x *Lease) cause() error {
	switch {
	case x.loss != nil:
		return x.loss
	case x.ended:
		return context.Canceled
	case x.shut:
		return ErrClosed
	default:
		return nil
	}
}

type leaseKey struct{}

// FromContext returns the innermost lease that ctx stands under. A context stands under a lease if
// it is the context of Do, DoValue, Wrap or a middleware, or [Lease.Context], or is derived from one of
// these. The lease may have ended since; [Lease.Err] tells.
func FromContext(ctx context.Context) (*Lease, bool) {
	x := leaseOf(ctx)
	return x, x != nil
}

// leaseOf is FromContext for this package. It returns nil if there is none.
func leaseOf(ctx context.Context) *Lease {
	if c := contextOf(ctx); c != nil {
		return c.lease
	}
	return nil
}

// contextOf returns the innermost context of a lease that ctx is or is derived from, or nil.
func contextOf(ctx context.Context) *leaseContext {
	c, _ := ctx.Value(leaseKey{}).(*leaseContext)
	return c
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
	for x != nil && x.want.Name != name {
		x = x.outer()
	}
	switch {
	case x == nil:
		return 0, invalidf("fence of %q: the context stands under no lease of that name", name)
	case x.Degraded():
		return 0, &unavailableError{"fence", name, errDegraded}
	case x.Fence() == 0:
		return 0, invalidf("fence of %q: it has none, as it is of a semaphore, or the %s backend mints none", name, x.engine.can.Backend)
	default:
		return x.Fence(), nil
	}
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
	if err := x.over(); err != nil {
		return err
	}
	x.hold.Check(x.engine.clock.Read()) // the watchdog's timer may be late
	return x.over()
}

// over is why x is over, as far as has been noticed.
func (x *Lease) over() error {
	x.root().mu.Lock()
	defer x.root().mu.Unlock()
	switch {
	case x.known && x.seen().result == nil: // before what has re-entered it was lost, if it was
		return ErrReleased
	case x.loss != nil:
		return x.loss
	case x.ended:
		return ErrReleased
	default:
		return nil
	}
}

func (x *Lease) live() bool { return x.Err() == nil }

// lost says of a lease whether it was lost before it could be given back.
func (x *Lease) lost() bool {
	x.root().mu.Lock()
	defer x.root().mu.Unlock()
	return x.loss != nil
}

// gone says that x has ended.
func (x *Lease) gone() bool {
	x.root().mu.Lock()
	defer x.root().mu.Unlock()
	return x.ended
}

// Format prints the lease's name and fence for every verb. It prints no token, so the output may be
// logged.
func (x *Lease) Format(f fmt.State, _ rune) {
	if x.none() {
		_, _ = io.WriteString(f, "lease(none)") // as below
		return
	}
	_, _ = fmt.Fprintf(f, "lease(%q, fence %d)", x.want.Name, x.Fence()) // fmt has no way to return the error
}
