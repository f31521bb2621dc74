package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"
)

// LeaseSet is the leases of several names, one for each, from [Locker.AcquireAll]. It is lost when one
// of them is. Its methods may be called from any goroutine.
//
// The methods of a nil *LeaseSet answer [ErrInvalid], or the zero value, and its Context has ended.
type LeaseSet struct {
	leases []*Lease        // sorted by name; the context of each is made of that of the one before
	work   context.Context // of the last of them
}

func (s *LeaseSet) none() bool { return s == nil || len(s.leases) == 0 }

// Names returns all names that are locked, sorted.
func (s *LeaseSet) Names() []string {
	if s.none() {
		return nil
	}
	names := make([]string, len(s.leases))
	for i, x := range s.leases {
		names[i] = x.name
	}
	return names
}

// Lease returns the lease of one of the names, with its fence, and nil for any other name. To end it
// alone ends the context of the set.
func (s *LeaseSet) Lease(name string) *Lease {
	if s.none() {
		return nil
	}
	for _, x := range s.leases {
		if x.name == name {
			return x
		}
	}
	return nil
}

// Context returns the context of the work. It is made of the context that was given to AcquireAll, and
// ends with it, with the first loss, whose *[LostError] is then its cause, and with the end of the set.
func (s *LeaseSet) Context() context.Context {
	if s.none() {
		return (*Lease)(nil).Context()
	}
	return s.work
}

// ValidUntil returns when trust in the set ends unless it is renewed: that of the lease with the
// least time.
func (s *LeaseSet) ValidUntil() time.Time {
	var until time.Time
	if s.none() {
		return until
	}
	for _, x := range s.leases {
		if u := x.ValidUntil(); until.IsZero() || u.Before(until) {
			until = u
		}
	}
	return until
}

// Degraded says that one of the leases excludes others in this process only: see [OnUnavailable].
func (s *LeaseSet) Degraded() bool {
	return !s.none() && slices.ContainsFunc(s.leases, (*Lease).Degraded)
}

// Err is [Lease.Err] for the set: nil as long as all of its leases may be trusted. A loss comes before
// the release of others.
func (s *LeaseSet) Err() error {
	if s.none() {
		return errNoLease
	}
	var first error
	for _, x := range s.leases {
		if err := x.Err(); err != nil && (first == nil || errors.Is(first, ErrReleased)) {
			first = err
		}
	}
	return first
}

// Release is [Lease.Release] for all leases of the set at once. If more than one answer is an error,
// they are joined.
func (s *LeaseSet) Release(ctx context.Context) error {
	if s.none() {
		return errNoLease
	}
	return s.end(ctx, false)
}

// Complete is [Lease.Complete] for all leases of the set at once.
func (s *LeaseSet) Complete(ctx context.Context) error {
	if s.none() {
		return errNoLease
	}
	if !s.leases[0].dedups() {
		return errors.Join(s.end(ctx, false), invalidf("Complete of %q: the leases have no WithDedup", s.Names()))
	}
	return s.end(ctx, true)
}

// Finish is [Lease.Finish] for all leases of the set.
func (s *LeaseSet) Finish(ctx context.Context, workErr error) error {
	if s.none() {
		return errors.Join(workErr, errNoLease)
	}
	err := s.end(context.WithoutCancel(ctx), workErr == nil && s.leases[0].dedups())
	return joinLoss(workErr, err)
}

// end ends all leases at once, so that it takes no longer than for one.
func (s *LeaseSet) end(ctx context.Context, mark bool) error {
	errs := make([]error, len(s.leases))
	var others sync.WaitGroup
	for i, x := range s.leases[1:] {
		others.Add(1)
		x.tenure.engine.spawn(func() {
			defer others.Done()
			errs[i+1] = x.end(ctx, mark && x.dedups())
		})
	}
	errs[0] = s.leases[0].end(ctx, mark)
	others.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// giveBack ends what a round has taken before it was complete.
func (s *LeaseSet) giveBack(ctx context.Context) {
	if s.none() {
		return
	}
	for _, x := range s.leases {
		if x.inside == nil {
			x.tenure.forgo()
		}
	}
	_ = s.end(ctx, false) // told to observer and log
}

// Format prints the names for every verb: what is printed may be logged.
func (s *LeaseSet) Format(f fmt.State, _ rune) {
	if s.none() {
		_, _ = io.WriteString(f, "leases(none)") // fmt has no way to return the error
		return
	}
	_, _ = fmt.Fprintf(f, "leases(%q)", s.Names()) // as above
}

// AcquireAll waits until it has a lease of each of the given names, in whatever order they come
// and however often. It is for work on several things at once, such as a transfer between
// two accounts. Names in different slots of a Cluster are as good as any others. Observers are told
// of each lease.
//
// The names are taken one by one, sorted. So callers that want some of the same names do not wait for
// each other in a circle. All of them share the budget of [WithWait].
// If one is refused, those that were taken are given back, and the error is that of the one
// name. If one is lost while others are waited for, all are given back, and AcquireAll begins again
// with new tokens.
//
// A caller that has a lease already, and asks for more under its context, waits only for names
// that are greater than all it has. The others are tried once, because waiting could close a
// circle. Nested calls of Acquire have no such protection.
//
// With [OnUnavailable] of [LocalOnly] each name is decided by itself, and the set is degraded if
// one lease is. A second round fails closed.
//
// The errors are those of [Locker.Acquire]. No names at all are [ErrInvalid].
func (l *Locker) AcquireAll(ctx context.Context, names []string, opts ...Option) (*LeaseSet, error) {
	cfg, err := l.resolve(opts)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, invalidf("names: none")
	}
	for _, name := range names {
		if err := l.engine.checkName(name); err != nil {
			return nil, err
		}
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	l.engine.enter()
	defer l.engine.leave()
	g := multiAcquire{locker: l, ctx: ctx, names: names, cfg: cfg, began: time.Now()}
	for {
		if s, err := g.round(); s != nil || err != nil {
			return s, err
		}
		g.cfg = g.cfg.failClosed() // it has waited for somebody who held a name
	}
}

// DoAll runs fn while it holds all the given names: it is [Locker.Do] with [Locker.AcquireAll].
func (l *Locker) DoAll(ctx context.Context, names []string, fn func(context.Context) error, opts ...Option) error {
	if fn == nil {
		return invalidf("fn: nil")
	}
	s, err := l.AcquireAll(ctx, names, opts...)
	if err != nil {
		return err
	}
	return runHeld(ctx, s.work, fn, s)
}

// multiAcquire is one call of AcquireAll.
type multiAcquire struct {
	locker *Locker
	ctx    context.Context
	names  []string // sorted, each of them once
	cfg    *config
	began  time.Time
}

// round takes one name after the other, each under the context of the one before: a loss ends the
// wait for those that follow. No set and no error means to begin again: one was
// lost before the last one came.
func (g *multiAcquire) round() (*LeaseSet, error) {
	s, together := &LeaseSet{work: g.ctx}, new(group)
	for _, name := range g.names {
		x, err := g.locker.acquire(s.work, name, g.turn(name))
		if err != nil {
			s.giveBack(g.ctx)
			return nil, g.failed(s.work, err)
		}
		x.set, s.leases = together, append(s.leases, x)
		s.work = x.workContext(s.work) //nolint:fatcontext // one for each name: the first loss ends them all
	}
	for _, x := range s.leases {
		// What was re-entered gets no better by being taken again: it is for whoever has it.
		if t := x.tenure; !x.live() || x.inside == nil && t.left() < t.ttl()/3 {
			s.giveBack(g.ctx)
			return nil, g.again(x.name)
		}
	}
	return s, nil
}

// failed is what a round comes to whose next acquire ended with err, under ctx.
func (g *multiAcquire) failed(ctx context.Context, err error) error {
	if g.ctx.Err() != nil || !errors.Is(err, context.Canceled) {
		return err
	}
	cause := context.Cause(ctx)
	if lost, ok := errors.AsType[*LostError](cause); ok {
		return g.again(lost.Name)
	}
	if errors.Is(cause, ErrClosed) {
		return ErrClosed
	}
	return err
}

// turn is how to ask for one name: within what is left of the budget, or once.
func (g *multiAcquire) turn(name string) *config {
	c := *g.cfg
	switch {
	case !g.mayWait(name):
		c.wait = 0
	case c.wait != WaitForever:
		c.wait = max(0, c.wait-time.Since(g.began))
	}
	return &c
}

// mayWait says whether the caller has nothing that those it would wait for can wait for in
// their turn. Where the name is re-entered, what counts is taken inside the lease that has
// it: all others who queue for that stand outside.
func (g *multiAcquire) mayWait(name string) bool {
	r := g.locker.engine
	x, _ := FromContext(g.ctx)
	greater := false
	for ; x != nil; x = x.outer {
		if x.tenure.engine == r && x.name >= name && x.live() {
			if x.name == name && !g.cfg.noReentry {
				return true
			}
			greater = true
		}
		if greater && (x.set == nil || x.outer == nil || x.outer.set != x.set) { // those of one set count as one
			return false
		}
	}
	return true
}

// again is what a round comes to in which a name was lost: nil for another one, if there is
// time for that.
func (g *multiAcquire) again(lost string) error {
	if g.cfg.wait != WaitForever && time.Since(g.began) >= g.cfg.wait {
		return &unavailableError{"acquire", lost, errLate}
	}
	return nil
}
