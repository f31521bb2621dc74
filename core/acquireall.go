package core

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/term"
)

// AcquireAll waits until it has a lease of each of the given names. Their order does not matter,
// and a name may be given more than once. Use it for work on several things at once, such as a
// transfer between two accounts. The names may be in different slots of a Cluster. Observers are
// told of each lease.
//
// A set has one clock, which begins when it is whole: [WithMaxHold], and the TTL [WithoutRenewal], count from then. It has one dedup
// marker, on its first name, which is left after the others have ended, and only if none of them was lost.
//
// The names are taken one by one, sorted, so two callers never wait for each other in a circle. All
// names share the budget of [WithWait]. If one name is refused, the leases taken before it are
// given back, and the error is the one of that name. If a lease is lost while AcquireAll waits for
// other names, all are given back, and it begins again with new tokens.
//
// A caller that already has a lease, and asks for more under its context, waits only for names that
// are greater than all it has. The others are tried once, because waiting for them could close a
// circle. Nested calls of Acquire have no such protection.
//
// With [WithDedup], what counts as the same work has the same scope and the same names, in the same
// order. So a transfer from one account is no duplicate of an earlier one to somebody else, and none
// of one in the other direction.
//
// The errors are those of [Locker.Acquire]. An empty list of names is [ErrInvalid].
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
	given := names
	names = slices.Compact(slices.Sorted(slices.Values(names)))
	if cfg.Dedup > 0 && len(names) > 1 {
		cfg = cfg.scopedBy(given)
	}
	l.engine.calls.Enter()
	defer l.engine.calls.Leave()
	g := multiAcquire{locker: l, ctx: ctx, names: names, cfg: cfg, began: l.engine.clock.Now()}
	for {
		if s, err := g.round(); s != nil || err != nil {
			return s, err
		}
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
	names  []string // sorted, each one once
	cfg    *config
	began  clock.Awake
}

// round takes one name after the other, each under the context of the one before, so that a loss
// ends the wait for the names that follow. Without a set and an error the caller begins again: a
// lease was lost before the last name was granted.
func (g *multiAcquire) round() (*LeaseSet, error) {
	s, together := &LeaseSet{work: g.ctx}, &group{marks: g.cfg.Dedup > 0 && len(g.names) > 1}
	returned := false
	defer func() {
		if !returned { // the observer has ended the goroutine
			s.giveBack(context.WithoutCancel(g.ctx))
		}
	}()
	for i, name := range g.names {
		x, err := g.locker.acquire(s.work, name, g.turn(i, together), g.budget(name))
		if err != nil {
			returned = true
			s.giveBack(g.ctx)
			return nil, g.failed(s.work, err)
		}
		s.leases = append(s.leases, x)
		s.work = x.workContext() //nolint:fatcontext // one for each name: the first loss ends them all
	}
	returned = true
	if lost := g.begin(s); lost != "" {
		s.giveBack(g.ctx)
		return nil, g.again(lost)
	}
	together.whole.Store(true)
	return s, nil
}

// begin begins the one clock of a set that is whole: the time of MaxHold, and that without a renewal, count from now for all of
// it. Those that have little left are renewed, all at once. It says which lease is over, or nearly so.
func (g *multiAcquire) begin(s *LeaseSet) (lost string) {
	r := g.locker.engine
	var renewals sync.WaitGroup
	for _, x := range s.leases {
		if x.root() != x { // its outermost holder deals with it
			continue
		}
		left, life := x.hold.Left(r.clock.Read())
		enough := max(life/2, g.cfg.TTL/3)
		if g.cfg.NoRenewal {
			enough = life // all of it counts from now
		}
		if left <= enough {
			renewals.Add(1)
			r.tasks.Go(func() {
				defer renewals.Done()
				x.hold.Refresh(g.ctx, r.room.Port, enough)
			})
		}
	}
	renewals.Wait()
	now := r.clock.Read()
	for _, x := range s.leases {
		if x.root() != x {
			if !x.live() {
				return x.want.Name
			}
			continue
		}
		x.hold.Turn(now, g.cfg.Turn)
		if left, _ := x.hold.Left(now); left < g.cfg.TTL/3 {
			return x.want.Name
		}
	}
	return ""
}

func (g *multiAcquire) waited() time.Duration { return g.locker.engine.clock.Now().Sub(g.began) }

// failed is the result of a round whose next acquire ended with err, under ctx.
func (g *multiAcquire) failed(ctx context.Context, err error) error {
	lost, ok := errors.AsType[*LostError](context.Cause(ctx))
	if ok && g.ctx.Err() == nil && errors.Is(err, context.Canceled) {
		return g.again(lost.Name)
	}
	return err
}

// budget is how long to wait for one name: for what is left, or not at all.
func (g *multiAcquire) budget(name string) time.Duration {
	switch {
	case !g.mayWait(name):
		return 0
	case g.cfg.wait == WaitForever: // no timer
		return WaitForever
	default:
		return max(0, g.cfg.wait-g.waited())
	}
}

// turn is how to ask for one name. Only the first one has the marker. Until the set is whole, each lease is renewed, and none has a
// limit of time.
func (g *multiAcquire) turn(i int, together *group) *config {
	c := *g.cfg
	c.set = together
	if i > 0 {
		c.Dedup = 0
	}
	c.Turn = term.Turn{Every: c.TTL / 3}
	return &c
}

// mayWait says whether waiting for name cannot close a circle: the caller holds nothing that the
// callers it would wait for can be waiting for. If name is re-entered, only what was taken inside
// the lease that has it counts, because all others who queue for that lease stand outside of it.
func (g *multiAcquire) mayWait(name string) bool {
	r := g.locker.engine
	x := leaseOf(g.ctx)
	greater := false
	for ; x != nil; x = x.outer() {
		if x.engine == r && x.want.Name >= name && x.live() {
			if x.want.Name == name && !g.cfg.noReentry {
				return true
			}
			greater = true
		}
		if greater && (x.cfg.set == nil || x.outer() == nil || x.outer().cfg.set != x.cfg.set) { // the leases of one set count as one
			return false
		}
	}
	return true
}

// again is the result of a round in which a lease was lost: nil for another round, if there is time
// for one.
func (g *multiAcquire) again(lost string) error {
	if g.waited() >= g.cfg.wait {
		return &unavailableError{"acquire", lost, errLate}
	}
	return nil
}

// scopedBy is c for work on several names: a dedup marker stands for all of them together, in the
// order in which the caller gave them. Without that a transfer from one account would count as done
// because of an earlier one to somebody else.
func (c *config) scopedBy(names []string) *config {
	scoped := *c
	sum := sha256.Sum256(fmt.Appendf(nil, "%q %q", c.Scope, names))
	scoped.Scope = "%names-" + hex.EncodeToString(sum[:])
	return scoped.settled()
}
