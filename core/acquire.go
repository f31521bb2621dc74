package core

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/contend"
	"github.com/holdfast-go/holdfast/core/internal/hold"
)

// Acquire waits until it has a lease of name. ctx limits the acquire only. The lease is renewed,
// and lives on, until it is released, lost or held for as long as [WithMaxHold] allows, or until
// the Locker is closed. So a program that forgets to release a lease keeps the name. A name is 1 to
// 200 bytes of UTF-8 without braces, spaces and control characters.
//
// The errors:
//
//   - [ErrHeld] if the wait budget of [WithWait] ended while the name was held;
//   - ctx's error, joined with ErrHeld or [ErrUnavailable], whichever was known last, if ctx ended;
//   - ErrUnavailable if the backend gave no answer for a whole TTL, or for all of a shorter budget,
//     or at once if it refuses this client: a wrong password, a missing permission;
//   - [ErrDuplicate], with [WithDedup], if the work is already done;
//   - [ErrClosed] once the Locker is closed;
//   - [ErrInvalid] before anything is sent.
//
// After an error nothing is left behind that outlives one TTL, or a longer [WithMinHold].
func (l *Locker) Acquire(ctx context.Context, name string, opts ...Option) (*Lease, error) {
	cfg, err := l.resolve(opts)
	if err != nil {
		return nil, err
	}
	return l.acquire(ctx, name, cfg, cfg.wait)
}

// TryAcquire is Acquire without waiting for another holder. It makes one attempt, which takes at
// most a third of the TTL and 2 s, and returns [ErrHeld] at once if the name is held. If this
// process already holds the name, or another goroutine of it waits for the name or asks for it, the answer
// can come from there, without a command. What was heard of another goroutine's attempt is never older than the call.
// [WithWait] has no effect here.
func (l *Locker) TryAcquire(ctx context.Context, name string, opts ...Option) (*Lease, error) {
	cfg, err := l.resolve(opts)
	if err != nil {
		return nil, err
	}
	return l.acquire(ctx, name, cfg, 0)
}

// acquire gets a lease within a budget, or says why not.
func (l *Locker) acquire(ctx context.Context, name string, c *config, budget time.Duration) (*Lease, error) {
	r := l.engine
	r.calls.Enter()
	defer r.calls.Leave()
	if err := r.checkName(name); err != nil {
		return nil, err
	}
	now := r.clock.Read()
	a := acquisition{engine: r, ctx: ctx, name: name, cfg: c, budget: budget, began: now.Awake()}
	x, err := a.run(now)
	a.report(x, err) // before work, which may find that x is lost: nothing is told of x before it was acquired
	if err != nil {
		return nil, raise(err)
	}
	if x.root() == x {
		a.work(x)
	}
	return x, nil
}

// acquisition is one call that wants a lease. Only the call's own goroutine uses it.
type acquisition struct {
	engine *engine
	ctx    context.Context
	name   string
	cfg    *config
	budget time.Duration // for which it waits; 0 for one attempt
	began  clock.Awake

	lease   *Lease
	held    *driver.Held // the last answer of that kind that the call knows of
	heldAt  clock.Awake
	here    *hold.Hold  // who of this process had the name as the call began to wait
	known   error       // the last lack of an answer that it knows of; matches ErrUnavailable
	said    clock.Awake // when the lock service has said that last; 0 for never
	waited  bool        // observers know that it waits
	long    bool        // and that it has waited for long
	limited bool        // and that another limit counts
}

func (a *acquisition) run(now clock.Reading) (*Lease, error) {
	r := a.engine
	if err := a.Gone(); err != nil {
		return nil, a.why(err)
	}
	if !a.cfg.noReentry {
		for outer := r.outer(a.ctx, a.name); outer != nil; outer = r.outer(a.ctx, a.name) { // it may end before it is re-entered
			if x, err := a.reenter(outer); x != nil || err != nil {
				return x, err
			}
		}
	}
	if r.room.Dog.Count() >= r.maxLeases {
		return nil, a.overCap("WithMaxLeases", r.maxLeases)
	}
	if a.budget > 0 {
		defer r.waiters.Add(-1)
		if r.waiters.Add(1) > int64(r.maxWaiters) {
			return nil, a.overCap("WithMaxWaiters", r.maxWaiters)
		}
	}
	if a.cfg.Together() {
		r.together.Store(true)
	}
	a.lease = newLease(a.ctx, r, a.cfg, a.name)
	h, err := r.room.Get(a.ctx, contend.Call{Want: &a.lease.want, Budget: a.budget, Long: a.longAt(), Now: now}, a)
	if h == nil {
		return nil, a.why(err)
	}
	x := a.lease
	x.got(h)
	if err := a.Gone(); err != nil { // once more: whoever closes, or leaves, looks for x after this
		a.giveBack(x)
		return nil, a.why(err)
	}
	return x, nil
}

// giveBack ends a lease whose caller has gone, who does not wait for that. Observers are told of its begin and of its end, so
// that counts of leases stay right.
func (a *acquisition) giveBack(x *Lease) {
	x.hold.Forgo()
	a.acquired(x)
	a.engine.tasks.Go(func() { _ = x.leave(context.WithoutCancel(a.ctx), claim.Left{}) })
}

func (a *acquisition) waitedFor() time.Duration { return a.engine.clock.Now().Sub(a.began) }
