package core

import (
	"context"
	"fmt"
	"time"
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
	return l.acquire(ctx, name, cfg)
}

// TryAcquire is Acquire without waiting for another holder. It makes one attempt, which takes at
// most a third of the TTL and 2 s, and returns [ErrHeld] at once if the name is held. If this
// process already holds the name, or another goroutine of it is asking for the name, the answer
// comes from there, without a command. [WithWait] has no effect here.
func (l *Locker) TryAcquire(ctx context.Context, name string, opts ...Option) (*Lease, error) {
	cfg, err := l.resolve(opts)
	if err != nil {
		return nil, err
	}
	if len(opts) == 0 {
		cfg = l.once
	} else if cfg != l.cfg {
		cfg.wait = 0
	}
	return l.acquire(ctx, name, cfg)
}

// acquire gets a lease, or says why not.
func (l *Locker) acquire(ctx context.Context, name string, c *config) (*Lease, error) {
	return l.attach(ctx, name, c, "")
}

// attach is acquire with the hash of a hand-off, which is "" if there is none.
func (l *Locker) attach(ctx context.Context, name string, c *config, handoff string) (*Lease, error) {
	r := l.engine
	r.call()
	defer r.called()
	if err := r.checkName(name); err != nil {
		return nil, err
	}
	now := time.Now()
	a := &acquisition{engine: r, ctx: ctx, name: name, cfg: c, handoff: handoff, began: now, seen: seen{answered: now}}
	x, err := a.run()
	a.waits.stop()
	if r.events != nil {
		a.report(x, err) // before work, which may find that x is lost: nothing is told of x before Acquired
	}
	if err == nil {
		a.work(x)
	}
	return x, err
}

func (a *acquisition) run() (*Lease, error) {
	if a.engine.drained() && a.life().Err() != nil {
		return nil, a.stopped()
	}
	if a.ctx.Err() != nil {
		return nil, a.ended()
	}
	if !a.cfg.noReentry {
		if outer := a.engine.outer(a.ctx, a.name); outer != nil {
			if x, err := a.reenter(outer); x != nil || err != nil {
				return x, err
			}
		}
	}
	if r := a.engine; r.watchdog.kept.Load() >= int64(r.maxLeases) {
		return nil, a.overCap("WithMaxLeases", r.maxLeases)
	}
	var x *Lease
	var err error
	if a.once() {
		x, err = a.single()
	} else {
		x, err = a.enqueue()
	}
	if a.silent(err) { // the attempt was that of another call, which fails closed
		return a.overtake(err)
	}
	return x, err
}

// single makes one attempt, unless this process already knows the answer or is about to.
func (a *acquisition) single() (*Lease, error) {
	w := &waiter{cfg: a.cfg, call: a}
	if a.cfg.together() || a.handoff != "" {
		x, err := a.alone(w)
		if x == nil && err == nil {
			err = a.overBudget()
		}
		a.giveUp(w, err)
		return x, err
	}
	for {
		joined, known, watch := a.engine.names.joinAlone(a.name, w)
		if joined {
			x, err := a.ask(w, (*contender).contend)
			a.giveUp(w, err)
			return x, err
		}
		if watch != nil {
			var err error
			if known, err = a.watch(watch); err != nil {
				return nil, err
			}
		}
		if err := a.learn(known); err != nil {
			return nil, err
		}
	}
}

// enqueue waits in this process's queue, in which [WithMaxWaiters] calls may wait. It ends when the
// call is given a turn of a tenure. Or the call becomes the contender, and asks the backend until
// there is a lease or a reason to stop.
func (a *acquisition) enqueue() (*Lease, error) {
	r := a.engine
	defer r.waiters.Add(-1)
	if r.waiters.Add(1) > int64(r.maxWaiters) {
		return nil, a.overCap("WithMaxWaiters", r.maxWaiters)
	}
	w := &waiter{cfg: a.cfg, call: a, lease: newLease(a.ctx, a.cfg, a.name)}
	if a.handoff != "" || a.cfg.together() && !r.names.wanted(a.cfg.queueKey(a.name)) {
		if x, err := a.alone(w); x != nil || err != nil {
			a.giveUp(w, err)
			return x, err
		}
	}
	x, err := a.waitTurn(w)
	if x == nil && err == nil {
		x, err = a.ask(w, (*contender).contend)
	}
	a.giveUp(w, err)
	if err == errPassed { //nolint:errorlint // contend's own, as it is
		err = a.outlive()
	}
	return x, err
}

// alone makes one attempt beside the queue. It is for leases that leave the name to others, so that
// the readers of a process need not ask one after the other. It overtakes nobody, because the
// backend refuses it while anybody waits there. An attempt with a hand-off overtakes nobody either:
// the name is not free, but kept for that hand-off.
func (a *acquisition) alone(w *waiter) (*Lease, error) {
	a.engine.names.joinNone(w)
	x, err := a.ask(w, (*contender).try)
	if x == nil {
		a.engine.names.leave(w, false)
	}
	return x, err
}

// overCap refuses what would be more than the process keeps. With it, a flood of names, or of
// callers for one name that is stuck, ends in errors and not in running out of memory.
func (a *acquisition) overCap(option string, n int) error {
	return &unavailableError{"acquire", a.name, fmt.Errorf("not asked: %s(%d) of this process is reached", option, n)}
}

// ask has the call ask as the contender. If the backend's client panics, the next waiter goes on.
func (a *acquisition) ask(w *waiter, how func(*contender) (*Lease, error)) (x *Lease, err error) {
	returned := false
	defer func() {
		if !returned {
			if a.token != nil {
				a.token.doubt()
			}
			a.giveUp(w, errNoAnswer)
		}
	}()
	x, err = how(&contender{acquisition: a, waiter: w})
	returned = true
	return x, err
}
