package core

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"
)

// AcquireAll waits until it has a lease of all the given names, in whatever order they come
// and however often. It is for work on several things at once, such as a transfer between
// two accounts. Each name is a lease of its own at the backend, so names in different slots
// of a Cluster are as good as any others; observers are told of each.
//
// The names are taken one by one, sorted, by everybody, so those who want some of the same
// names do not wait for each other in a circle. All of them share the budget of [WithWait].
// If one is refused, those that were taken are given back, and the error is that of the one
// name. If one is lost while others are waited for, all are given back, and it begins anew
// with new tokens.
//
// Work that has a lease already, and asks for more under its context, waits only for names
// that are greater than all it has; the others are tried once, for waiting could close a
// circle. Nested calls of Acquire have no such protection.
//
// With [OnUnavailable] of [LocalOnly] each name goes its own way, and the lease is degraded if
// one of them is. What begins anew fails closed.
//
// The errors are those of [Locker.Acquire]. No names at all are [ErrInvalid].
func (l *Locker) AcquireAll(ctx context.Context, names []string, opts ...Option) (*Lease, error) {
	cfg, err := l.resolve(opts)
	if err != nil {
		return nil, err
	}
	if len(names) == 0 {
		return nil, invalidf("names: none")
	}
	if cfg.handoff.name != "" {
		return nil, invalidf("WithHandoff: not with AcquireAll, as a hand-off is for one name")
	}
	for _, name := range names {
		if err := l.root.checkName(name); err != nil {
			return nil, err
		}
	}
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	maxHold := cfg.maxHoldOr(defaultMaxHold)
	g := gathering{locker: l, ctx: ctx, names: names, cfg: cfg, maxHold: maxHold, began: time.Now()}
	if len(names) == 1 {
		return l.acquire(ctx, names[0], g.turn(names[0]), maxHold)
	}
	l.root.enter()
	defer l.root.leave()
	for {
		if x, err := g.round(); x != nil || err != nil {
			return x, err
		}
		g.cfg = g.cfg.failClosed() // it has waited for somebody who held a name
	}
}

// gathering is one call that wants a lease of several names.
type gathering struct {
	locker  *Locker
	ctx     context.Context
	names   []string // sorted, each of them once
	cfg     *config
	maxHold time.Duration
	began   time.Time
}

// round takes one name after the other. No lease and no error means to begin anew: one was
// lost before the last one came.
func (g *gathering) round() (*Lease, error) {
	x := newLease(g.ctx, g.cfg, g.names[0])
	x.parts = new([]*Lease)
	ctx, cut := context.WithCancelCause(g.ctx) // ends with the first loss, too
	defer cut(nil)
	for _, name := range g.names {
		part, err := g.locker.acquire(ctx, name, g.turn(name), g.maxHold)
		if err != nil {
			g.giveBack(x)
			if g.ctx.Err() != nil || !errors.Is(err, context.Canceled) { // it may end by a loss too: of a lease around
				return nil, err
			}
			lost, ok := errors.AsType[*LostError](context.Cause(ctx))
			switch {
			case ok:
				return nil, g.again(lost.Name)
			case errors.Is(context.Cause(ctx), ErrClosed):
				return nil, ErrClosed
			}
			return nil, err
		}
		part.endWith(&leaseContext{ctx, part, cut})
		*x.parts = append(*x.parts, part)
	}
	own, end := context.WithCancelCause(context.WithoutCancel(g.ctx))
	x.own = &leaseContext{own, x, end}
	for _, part := range *x.parts {
		part.endWith(x.own)
	}
	for _, part := range *x.parts {
		// What was re-entered gets no better by being taken again: it is for whoever has it.
		if t := part.tenure; part.err() != nil || part.inside == nil && t.left() < t.ttl()/3 {
			g.giveBack(x)
			return nil, g.again(part.name)
		}
	}
	return x, nil
}

// turn is how to ask for one name: within what is left of the budget, or once.
func (g *gathering) turn(name string) *config {
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
func (g *gathering) mayWait(name string) bool {
	r := g.locker.root
	x, _ := FromContext(g.ctx)
	for ; x != nil; x = x.outer {
		greater := false
		for _, y := range x.each() {
			if y.tenure.root != r || y.name < name || !y.live() {
				continue
			}
			if y.name == name && !g.cfg.noReentry {
				return true
			}
			greater = true
		}
		if greater {
			return false
		}
	}
	return true
}

// again is what a round comes to in which a name was lost: nil for another one, if there is
// time for that.
func (g *gathering) again(lost string) error {
	if g.cfg.wait != WaitForever && time.Since(g.began) >= g.cfg.wait {
		return &unavailableError{"acquire", lost, errLate}
	}
	return nil
}

// giveBack ends what a round has taken.
func (g *gathering) giveBack(x *Lease) {
	if len(*x.parts) == 0 {
		return
	}
	for _, part := range *x.parts {
		if part.inside == nil {
			part.tenure.forgo()
		}
	}
	_ = x.together(func(part *Lease) error { return part.end(g.ctx, false) }) // told to observer and log
}

// each returns the leases that x consists of: x itself, if it is that of one name.
func (x *Lease) each() []*Lease {
	if x.none() {
		return nil
	}
	if x.parts == nil {
		return []*Lease{x}
	}
	return *x.parts
}

// endWith has e end with x, which is part of another lease, instead of what was there before.
func (x *Lease) endWith(e *leaseContext) {
	x.tenure.mu.Lock()
	defer x.tenure.mu.Unlock()
	x.own = e
	if cause := x.cause(); cause != nil {
		e.end(cause)
	}
}

// together calls f for all parts at once, so that it takes no longer than for one.
func (x *Lease) together(f func(*Lease) error) error {
	errs := make([]error, len(*x.parts))
	var others sync.WaitGroup
	for i, part := range (*x.parts)[1:] {
		others.Add(1)
		part.tenure.root.spawn(func() {
			defer others.Done()
			errs[i+1] = f(part)
		})
	}
	errs[0] = f((*x.parts)[0])
	others.Wait()
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}
