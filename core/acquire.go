package core

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/key"
)

// acquisition is one call that wants a lease.
type acquisition struct {
	engine *engine
	ctx    context.Context
	name   string
	cfg    *config

	began    time.Time
	answered time.Time   // when the backend last answered; until it does, when the call began
	known    error       // a *HeldError, once something said that the name is held
	failed   error       // matches ErrUnavailable: what the last attempt came to
	heldAt   clock.Awake // when the backend last told anybody in the line that the name is held, as in seen
	refused  bool        // it has told this call
	waited   bool
	called   bool    // up, from its place in the line
	stood    bool    // behind a lease of this process, until it was called up
	told     bool    // that another limit counts
	handoff  string  // to take the name over with, until an attempt was answered
	token    *token  // the token that is being tried, nil if there is none
	old      *tenure // of this process, to yield in the same step
}

// acquire gets a lease, or says why not.
func (l *Locker) acquire(ctx context.Context, name string, c *config) (*Lease, error) {
	return l.attach(ctx, name, c, "")
}

// attach is acquire with the hash of a hand-off, which may be none.
func (l *Locker) attach(ctx context.Context, name string, c *config, handoff string) (*Lease, error) {
	r := l.engine
	r.enter()
	defer r.leave()
	if err := r.checkName(name); err != nil {
		return nil, err
	}
	now := time.Now()
	a := &acquisition{
		engine: r, ctx: ctx, name: name, cfg: c, began: now, answered: now, handoff: handoff,
	}
	x, err := a.run()
	if r.events != nil {
		a.report(x, err)
	}
	return x, err
}

func (r *engine) checkName(name string) error {
	if limit := r.can.MaxName; limit > 0 && len(name) > limit {
		return invalidf("name: %d bytes, and the %s backend takes %d", len(name), r.can.Backend, limit)
	}
	return key.CheckName(name)
}

func (a *acquisition) run() (*Lease, error) {
	if a.engine.closed() {
		return nil, ErrClosed
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
		x, err = a.wait()
	}
	if a.silent(err) { // somebody else of this process has asked, who fails closed
		return a.overtake(err)
	}
	return x, err
}

// once says that the call makes one attempt and waits for no holder.
func (a *acquisition) once() bool { return a.cfg.wait == 0 }

// single makes one attempt, unless this process knows the answer already or is about to.
func (a *acquisition) single() (*Lease, error) {
	w := &waiter{cfg: a.cfg}
	if a.cfg.together() || a.handoff != "" { // beside the line of this process
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
			x, err := a.contend(w)
			a.giveUp(w, err)
			return x, err
		}
		if watch != nil {
			var err error
			if known, err = a.watch(watch); err != nil {
				return nil, err
			}
		}
		if err := a.beside(known); err != nil {
			return nil, err
		}
	}
}

// queue waits in this process's line, until it is given a turn of a tenure, or it is the
// contender and has asked the backend until there is a lease or a reason to stop.
func (a *acquisition) queue() (*Lease, error) {
	w := &waiter{cfg: a.cfg, lease: newLease(a.ctx, a.cfg, a.name)}
	if a.handoff != "" || a.cfg.together() && !a.engine.names.wanted(a.cfg.queueKey(a.name)) {
		if x, err := a.alone(w); x != nil || err != nil {
			a.giveUp(w, err)
			return x, err
		}
	}
	x, err := a.stand(w)
	if x == nil && err == nil {
		x, err = a.contend(w)
	}
	a.giveUp(w, err)
	if err == errPassed { //nolint:errorlint // contend's own, as it is
		err = a.outlive()
	}
	return x, err
}

// alone makes one attempt beside the line, for a lease that leaves the name to others: a
// process's readers do not have to ask one after the other. It overtakes nobody, as the
// backend refuses it while anybody stands in line there. Nor does one with a hand-off: the name
// is not free, but kept for it.
func (a *acquisition) alone(w *waiter) (*Lease, error) {
	a.engine.names.joinNone(w)
	x, err := a.try(w, &pace{acquisition: a, waiter: w})
	if x == nil {
		a.engine.names.leave(w, false)
	}
	return x, err
}

// giveUp ends the call's part in the line and its token, after an error.
func (a *acquisition) giveUp(w *waiter, err error) {
	if err == nil {
		return
	}
	unheard, empty := a.engine.names.leave(w, a.quits(err))
	if unheard.lease != nil {
		a.giveBack(unheard.lease)
	}
	a.giveUpOld(unheard.old)
	a.giveUpOld(a.old)
	if a.token == nil && empty != nil {
		a.token = newToken(a.engine, a.name, a.cfg)
	}
	if a.token != nil {
		a.token.giveUp(a.ctx, empty)
	}
}

// giveUpOld releases a tenure that this call should have yielded.
func (a *acquisition) giveUpOld(t *tenure) {
	if t != nil {
		ctx := context.WithoutCancel(a.ctx)
		a.engine.spawn(func() { _ = release{tenure: t}.run(ctx) }) // told to observer and log
	}
}
