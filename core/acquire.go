package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
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
	a := acquisition{engine: r, ctx: ctx, name: name, cfg: c, handoff: handoff, began: r.clock.Now()}
	x, err := a.run()
	a.report(x, err) // before work, which may find that x is lost: nothing is told of x before it was acquired
	if err != nil {
		return nil, err
	}
	if len(r.work) > 0 && x.inside == nil {
		a.work(x)
	}
	return x, nil
}

// acquisition is one call that wants a lease. Only the call's own goroutine uses it.
type acquisition struct {
	engine  *engine
	ctx     context.Context
	name    string
	cfg     *config
	handoff string // hash of the hand-off to take the name over with
	began   clock.Awake

	lease   *Lease
	steps   *contend.Caller
	held    *driver.Held // the last answer of that kind that the call knows of
	heldAt  clock.Awake
	known   error       // the last lack of an answer that it knows of; matches ErrUnavailable
	said    clock.Awake // when the lock service has said that last; 0 for never
	waited  bool        // observers know that it waits
	long    bool        // and that it has waited for long
	limited bool        // and that another limit counts
}

// errBudget is the end of the wait budget, inside.
var errBudget = errors.New("the wait budget is over")

// once says that the call makes one attempt and waits for no holder.
func (a *acquisition) once() bool { return a.cfg.wait == 0 }

func (a *acquisition) run() (*Lease, error) {
	r := a.engine
	if err := a.gone(); err != nil {
		return nil, a.why(err)
	}
	if !a.cfg.noReentry {
		if outer := r.outer(a.ctx, a.name); outer != nil {
			if x, err := a.reenter(outer); x != nil || err != nil {
				return x, err
			}
		}
	}
	if r.dog.Count() >= r.maxLeases {
		return nil, a.overCap("WithMaxLeases", r.maxLeases)
	}
	if !a.once() {
		defer r.waiters.Add(-1)
		if r.waiters.Add(1) > int64(r.maxWaiters) {
			return nil, a.overCap("WithMaxWaiters", r.maxWaiters)
		}
	}
	if a.cfg.together() && !r.together.Load() {
		r.together.Store(true)
	}
	a.lease = newLease(a.ctx, r, a.cfg, a.name, a.handoff)
	h, err := a.contend()
	if h == nil {
		return nil, a.why(err)
	}
	x := a.lease
	x.got(h)
	if err == nil {
		err = a.gone() // once more: whoever closes, or leaves, looks for x after this
	}
	if err != nil {
		a.giveBack(x)
		return nil, a.why(err)
	}
	return x, nil
}

// gone is why the call must not go on, if it must not.
func (a *acquisition) gone() error {
	r := a.engine
	switch {
	case r.life.Err() != nil:
		return ErrClosed
	case r.accept.Err() != nil && !a.begun():
		return ErrDraining
	default:
		return a.left()
	}
}

// errLeft is the end of the caller's context, inside: a driver's own error can look like that.
var errLeft = errors.New("the caller has left")

func (a *acquisition) left() error {
	if a.ctx.Err() != nil {
		return errLeft
	}
	return nil
}

// tooLate says that the caller's time is over. A client can see that a moment before the context ends.
func (a *acquisition) tooLate() bool {
	deadline, ok := a.ctx.Deadline()
	return a.ctx.Err() != nil || ok && time.Until(deadline) <= 0
}

// contend carries out the steps of the call.
func (a *acquisition) contend() (*hold.Hold, error) {
	r := a.engine
	a.steps = r.place.NewCaller(a.began, &a.lease.want, a.once())
	for s := a.steps.Next(a.began); ; {
		r.carry(s)
		switch s.Do {
		case contend.Send:
			reply := r.desk.Acquire(a.ctx, s.Claim, &s.Want.Wish, s.Fences, r.clock.Read(), s.For)
			a.heard(reply)
			s = a.steps.Answered(reply, a.gone())
		case contend.Listen:
			s = a.listen()
		case contend.Watch:
			s = a.watch(s)
		case contend.Over:
			return s.Hold, s.Err
		default:
			s = a.steps.Next(r.clock.Now())
		}
	}
}

// heard takes note of the outcome of an attempt.
func (a *acquisition) heard(reply call.Reply) {
	m := reply.Meaning()
	switch {
	case m.Kind == driver.Done:
		a.tellLimit(reply.Grant.Limit)
	case m.Kind == driver.HeldBy:
		a.said = reply.Now.Awake()
		a.learn(contend.News{Held: m.Held, At: a.said})
	case m.Kind != driver.Marked && !a.tooLate(): // else it is the caller who did not wait for the answer
		a.known = a.unavailable(reply.Err)
	}
}

// learn takes note of what the line knows.
func (a *acquisition) learn(n contend.News) {
	if n.Held != nil {
		a.held, a.heldAt = n.Held, n.At
		a.tellLimit(n.Held.Limit)
	}
	if n.Err != nil {
		a.known = a.unavailable(n.Err)
	}
}

func (a *acquisition) unavailable(err error) error {
	return &unavailableError{"acquire", a.name, opaque(err)}
}

// look takes note of what this process knows of the name. It says if that is anything.
func (a *acquisition) look() (v contend.Look, known bool) {
	v = a.engine.place.Table.Watch(contend.Key(&a.lease.want))
	if v.Held {
		now := a.engine.clock.Now()
		a.learn(contend.News{Held: &driver.Held{Label: v.Has.Want().Label, Remaining: v.Has.Remaining(now)}, At: now})
	} else if v.Known {
		a.learn(v.News)
		if v.News.Held != nil {
			a.said = v.News.At
		}
	}
	return v, a.held != nil || a.known != nil
}

// listen waits for a word of the line.
func (a *acquisition) listen() contend.Step {
	a.beginWait()
	if a.held == nil {
		a.look() // if it is held here, nobody says so later
	}
	var budget <-chan time.Time
	if a.cfg.wait != WaitForever {
		timer := time.NewTimer(a.cfg.wait - a.waitedFor())
		defer timer.Stop()
		budget = timer.C
	}
	long, end := a.untilLong()
	defer end()
	drain := a.engine.accept.Done()
	var outer <-chan struct{} // ends when the lease does whose work this call belongs to, once the Locker drains
	for {
		select {
		case w := <-a.steps.Words():
			return a.steps.Told(w)
		case <-long:
			a.look()
			a.tellLong()
		case <-budget:
			if _, known := a.look(); known {
				return a.leave(errBudget)
			}
			return a.lastAnswer()
		case <-a.ctx.Done():
			a.look()
			return a.leave(errLeft)
		case <-a.engine.life.Done():
			return a.leave(ErrClosed)
		case <-drain:
			if outer = a.under(); outer == nil {
				return a.leave(ErrDraining)
			}
			drain = nil
		case <-outer:
			if outer = a.under(); outer == nil {
				return a.leave(ErrDraining)
			}
		}
	}
}

// leave ends the wait because of err.
func (a *acquisition) leave(err error) contend.Step {
	s, broken := a.steps.Leave(err)
	if broken != nil {
		broken()
	}
	return s
}

// lastAnswer is the end of the budget of a call that knows nothing yet. It gets the outcome of the attempt under way, as a call
// without a budget does.
func (a *acquisition) lastAnswer() contend.Step {
	timer := time.NewTimer(driver.Patience(a.cfg.ttl) - a.waitedFor())
	defer timer.Stop()
	for {
		v, known := a.look()
		if known {
			return a.leave(errBudget)
		}
		select {
		case w := <-a.steps.Words():
			return a.steps.Told(w)
		case <-v.Changed:
		case <-timer.C:
			a.known = a.unavailable(errNoAnswer)
			return a.leave(errBudget)
		case <-a.ctx.Done():
			return a.leave(errLeft)
		case <-a.engine.life.Done():
			return a.leave(ErrClosed)
		}
	}
}

// watch waits until somebody else of this process knows more about the name.
func (a *acquisition) watch(s contend.Step) contend.Step {
	timer := time.NewTimer(s.For)
	defer timer.Stop()
	select {
	case <-s.Changed:
		return a.steps.Next(a.engine.clock.Now())
	case <-timer.C:
		return contend.Step{Do: contend.Over, Err: contend.ErrSilent}
	case <-a.ctx.Done():
		return contend.Step{Do: contend.Over, Err: errLeft}
	case <-a.engine.life.Done():
		return contend.Step{Do: contend.Over, Err: ErrClosed}
	}
}

func (a *acquisition) waitedFor() time.Duration { return a.engine.clock.Now().Sub(a.began) }

// why is the error of a call that has ended with err. A panic of the backend's client goes on here.
func (a *acquisition) why(err error) error {
	if p, ok := errors.AsType[*call.Panic](err); ok {
		panic(p.Value)
	}
	if held, ok := errors.AsType[*contend.Held](err); ok {
		a.held, a.heldAt = held.Held, a.engine.clock.Now()
		return a.heldError()
	}
	if d, ok := errors.AsType[*driver.Duplicate](err); ok {
		return &DuplicateError{a.name, d.Label}
	}
	switch {
	case errors.Is(err, ErrClosed), errors.Is(err, contend.ErrClosed):
		return ErrClosed
	case errors.Is(err, ErrDraining):
		return a.engine.refusal("acquire", a.name)
	case a.ctx.Err() != nil, errors.Is(err, errLeft):
		return a.ended()
	case errors.Is(err, errBudget):
		return a.overBudget()
	case errors.Is(err, contend.ErrSilent):
		return a.unavailable(errNoAnswer)
	default:
		return a.unavailable(err)
	}
}

// overBudget is the error for the end of the wait budget.
func (a *acquisition) overBudget() error {
	switch {
	case a.held != nil:
		return a.heldError()
	case a.known != nil:
		return a.known
	default:
		return &unavailableError{"acquire", a.name, errNotAsked}
	}
}

// ended is the error for the end of the caller's ctx. The backend's client can see the deadline a
// moment before the ctx ends; then ended waits for that moment.
func (a *acquisition) ended() error {
	if a.ctx.Err() == nil {
		timer := time.NewTimer(grace)
		defer timer.Stop()
		select {
		case <-a.ctx.Done():
		case <-timer.C:
		}
	}
	over := a.ctx.Err()
	if over == nil { // there are contexts that do not keep their deadlines
		over = context.DeadlineExceeded
	}
	switch {
	case a.held != nil:
		return &endedError{over, a.heldError()}
	case a.known != nil:
		return &endedError{over, a.known}
	default:
		return &endedError{over, &unavailableError{"acquire", a.name, errNotAsked}}
	}
}

// heldError is the error for a name that has a holder. It says so if that is another call of this
// process, since this call may be a part of that one's work.
func (a *acquisition) heldError() error {
	h, r := a.held, a.engine
	after := h.Remaining - r.clock.Now().Sub(a.heldAt)
	switch {
	case h.Exact:
	case after <= 0:
		after = jitter(time.Second)
	default:
		after = jitter(min(after, time.Second))
	}
	err := &HeldError{Name: a.name, Label: h.Label, RetryAfter: max(after, time.Millisecond), Exact: h.Exact}
	if a.lease == nil || r.outer(a.ctx, a.name) != nil {
		return err
	}
	if v := r.place.Table.Watch(contend.Key(&a.lease.want)); v.Held {
		err.Here, err.HeldFor = true, r.clock.Read().Up().Sub(v.Has.Begun())
	}
	return err
}

// overCap refuses what would be more than the process keeps. With it, a flood of names, or of
// callers for one name that is stuck, ends in errors and not in running out of memory.
func (a *acquisition) overCap(option string, n int) error {
	return &unavailableError{"acquire", a.name, fmt.Errorf("%w: %s(%d) of this process is reached", errFull, option, n)}
}

// giveBack ends a lease whose caller has gone. Observers are told of its begin and of its end, so
// that counts of leases stay right.
func (a *acquisition) giveBack(x *Lease) {
	x.hold.Forgo()
	a.acquired(x)
	end := func() { _ = x.leave(context.WithoutCancel(a.ctx), claim.Left{}) } // observers are told
	if a.ctx.Err() != nil {
		a.engine.tasks.Go(end) // its caller must not wait any longer
		return
	}
	end()
}

// report tells observers what the call has come to.
func (a *acquisition) report(x *Lease, err error) {
	if a.waited && a.engine.observes(EventWaited) {
		a.engine.tell(a.outcome(EventWaited, err))
	}
	if err == nil {
		a.acquired(x)
		return
	}
	kind := EventFailed
	if _, held := errors.AsType[*HeldError](err); held {
		kind = EventHeld
	}
	if a.engine.observes(kind) {
		a.engine.tell(a.outcome(kind, err))
	}
}

// outcome is an event about the end of the call.
func (a *acquisition) outcome(kind EventKind, err error) Event {
	e := a.cfg.event(kind, a.ctx, a.name)
	e.Took, e.Err = a.waitedFor(), err
	if a.said != 0 {
		e.said = a.engine.clock.Time(a.said)
	}
	return e
}

func (a *acquisition) acquiredEvent(x *Lease) Event {
	e := a.cfg.event(EventAcquired, a.ctx, a.name)
	e.Took, e.Fence, e.Reentry, e.Degraded = a.waitedFor(), x.Fence(), x.inside != nil, x.Degraded()
	return e
}

// acquired tells observers of x, and if x was lost meanwhile, of that.
func (a *acquisition) acquired(x *Lease) {
	var e Event
	told := a.engine.observes(EventAcquired)
	if told {
		e = a.acquiredEvent(x)
	}
	if x.inside != nil {
		if told {
			a.engine.tell(e)
		}
		return
	}
	if x.Degraded() {
		a.engine.tell(a.outcome(EventDegraded, a.unavailable(x.hold.Claim.Outage)))
	}
	x.mu.Lock()
	if told {
		a.engine.tell(e) // with the mutex held, so that nothing is told of x before
	}
	x.told = true
	due := x.lossDue
	x.mu.Unlock()
	if due {
		x.tellLost(x.loss.Reason)
	}
}

// beginWait tells observers, once, that the call has found the name held and waits.
func (a *acquisition) beginWait() {
	if a.waited {
		return
	}
	a.waited = true
	if a.engine.observes(EventWaiting) {
		a.engine.tell(a.cfg.event(EventWaiting, a.ctx, a.name))
	}
}

// tellLimit tells observers, once, that n counts instead of the caller's limit.
func (a *acquisition) tellLimit(n int) {
	if n > 0 && !a.limited && a.engine.observes(EventLimited) {
		a.limited = true
		e := a.cfg.event(EventLimited, a.ctx, a.name)
		e.Asked, e.Counts = a.cfg.limit, n
		a.engine.tell(e)
	}
}

// longWait is for how many TTLs a call waits before observers are told, once. It may be one of several calls, here or in
// other processes, that wait for one another, or a part of the work that it waits for. Nobody can know that, so nothing changes for the call.
const longWait = 3

// untilLong fires when the call has waited for so long, or never if nobody is to be told.
func (a *acquisition) untilLong() (long <-chan time.Time, end func()) {
	if a.long || a.cfg.campaigns || !a.engine.observes(EventLongWait) {
		return nil, func() {}
	}
	timer := time.NewTimer(longWait*a.cfg.ttl - a.waitedFor())
	return timer.C, func() { timer.Stop() }
}

// tellLong tells observers, once, that the call has waited for so long.
func (a *acquisition) tellLong() {
	a.long = true
	e := a.cfg.event(EventLongWait, a.ctx, a.name)
	e.Took = a.waitedFor()
	if a.held != nil {
		e.Holder = a.held.Label
	}
	for x := leaseOf(a.ctx); x != nil; x = x.outer {
		if x.live() && !slices.Contains(e.Holds, x.name) {
			e.Holds, e.HoldsOf = append(e.Holds, x.name), append(e.HoldsOf, x.cfg.template)
		}
	}
	slices.Reverse(e.Holds)
	slices.Reverse(e.HoldsOf)
	a.engine.tell(e)
}

// work has the context of the work made by whoever wants to. It is called without a mutex held, since that is code of the user.
//
// The lease can be lost meanwhile. Observers were then told of its end in the context that it had before.
func (a *acquisition) work(x *Lease) {
	e := a.acquiredEvent(x)
	for _, f := range a.engine.work {
		under := makeWork(f, x, e)
		x.mu.Lock()
		if under != nil && x.loss == nil {
			x.values, x.work.parent = under, under
		}
		x.mu.Unlock()
	}
}

// makeWork asks f. A panic of it ends here, and the result is nil. If it ends the goroutine instead, nobody gets the lease, so it
// is given back.
func makeWork(f func(context.Context, Event) context.Context, x *Lease, e Event) (under context.Context) {
	returned := false
	defer func() {
		if returned {
			return
		}
		value := recover()
		if r := x.engine; r.log != nil {
			r.log.add(Event{Kind: eventPanicked, Err: panicOf("WithWorkContext", "the work has its caller's context", value)})
		}
		if value == nil {
			_ = x.end(context.WithoutCancel(x.values), false) // observers are told
		}
	}()
	under = f(x.values, e)
	returned = true
	return under
}
