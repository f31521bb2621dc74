package core

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// LeaseSet is the leases of several names, one for each name, from [Locker.AcquireAll]. It is lost
// when one of them is lost. Its methods may be called from any goroutine.
//
// The methods of a nil *LeaseSet return [ErrInvalid] or the zero value, and its Context has ended.
type LeaseSet struct {
	leases []*Lease        // sorted by name; the context of each is derived from that of the one before
	work   context.Context // the context of the last lease
}

func (s *LeaseSet) none() bool { return s == nil || len(s.leases) == 0 }

// Names returns all names that are locked, sorted.
func (s *LeaseSet) Names() []string {
	if s.none() {
		return nil
	}
	names := make([]string, len(s.leases))
	for i, x := range s.leases {
		names[i] = x.want.Name
	}
	return names
}

// Lease returns the lease of one of the names, with its fence. It returns nil for any other name.
// If you end that lease alone, the context of the set ends.
func (s *LeaseSet) Lease(name string) *Lease {
	if s.none() {
		return nil
	}
	for _, x := range s.leases {
		if x.want.Name == name {
			return x
		}
	}
	return nil
}

// Context returns the context of the work. It is derived from the context that was given to
// AcquireAll. It ends with that context, with the first loss, and with the end of the set. After a
// loss its cause is the *[LostError].
func (s *LeaseSet) Context() context.Context {
	if s.none() {
		return (*Lease)(nil).Context()
	}
	return s.work
}

// ValidUntil returns when trust in the set ends unless it is renewed: the earliest ValidUntil of
// its leases.
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

// Degraded says that at least one of the leases excludes others in this process only: see
// [OnUnavailable].
func (s *LeaseSet) Degraded() bool {
	return !s.none() && slices.ContainsFunc(s.leases, (*Lease).Degraded)
}

// Err is [Lease.Err] for the set. It returns nil as long as all of its leases may be trusted. If
// one lease is lost and another one released, it returns the loss.
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

// Release is [Lease.Release] for all leases of the set at once. If there are several errors, they
// are joined.
func (s *LeaseSet) Release(ctx context.Context) error {
	if s.none() {
		return errNoLease
	}
	return s.end(ctx, false)
}

// Complete is [Lease.Complete] for all leases of the set: the one that leaves the marker ends once the others have ended. So it can take twice
// as long as for one.
func (s *LeaseSet) Complete(ctx context.Context) error {
	if s.none() {
		return errNoLease
	}
	if !s.leases[0].dedups() {
		return errors.Join(s.end(ctx, false), invalidf("Complete of %q: the leases have no WithDedup", s.Names()))
	}
	return s.end(ctx, true)
}

// Finish is [Lease.Finish] for all leases of the set, which end as by Complete or by Release.
func (s *LeaseSet) Finish(ctx context.Context, workErr error) error {
	if s.none() {
		return errors.Join(workErr, errNoLease)
	}
	err := s.end(context.WithoutCancel(ctx), workErr == nil && s.leases[0].dedups())
	return joinLoss(workErr, err)
}

// end ends all leases at once. The first one has the marker of all, so it ends last, and leaves it only if nothing of
// the set was lost.
func (s *LeaseSet) end(ctx context.Context, mark bool) error {
	if ctx.Err() == nil && ctx.Done() != nil { // it may be that of the set, which ends now
		beyond, cancel := s.leases[0].beyond(ctx)
		defer cancel()
		ctx = beyond
	}
	if !mark {
		return s.endAll(ctx, s.leases)
	}
	s.retire()
	err := s.endAll(ctx, s.leases[1:])
	mark = !slices.ContainsFunc(s.leases, (*Lease).lost)
	return join(s.leases[0].end(ctx, mark), err)
}

// retire ends all contexts of the set, so that no work goes on under one lease while others end.
func (s *LeaseSet) retire() {
	for _, x := range s.leases {
		x.root.retire(x)
	}
}

// endAll ends leases at once, so that it takes no longer than for one.
func (s *LeaseSet) endAll(ctx context.Context, leases []*Lease) error {
	errs := make([]error, len(leases))
	var others sync.WaitGroup
	for i, x := range leases {
		others.Add(1)
		end := func() {
			defer others.Done()
			errs[i] = x.end(ctx, false)
		}
		if i+1 < len(leases) {
			x.engine.tasks.Go(end)
		} else {
			end()
		}
	}
	others.Wait()
	return join(errs...)
}

// join is errors.Join, and leaves a single error as it is.
func join(errs ...error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// giveBack ends the leases of a round that was not completed.
func (s *LeaseSet) giveBack(ctx context.Context) {
	if s.none() {
		return
	}
	for _, x := range s.leases {
		if x.root == x {
			x.hold.Forgo()
		}
	}
	_ = s.end(ctx, false) // told to observer and log
}

// Format prints the names for every verb. It prints no token, so the output may be logged.
func (s *LeaseSet) Format(f fmt.State, _ rune) {
	if s.none() {
		_, _ = io.WriteString(f, "leases(none)") // fmt has no way to return the error
		return
	}
	_, _ = fmt.Fprintf(f, "leases(%q)", s.Names()) // as above
}

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
	l.engine.call()
	defer l.engine.called()
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
	s, together := &LeaseSet{work: g.ctx}, new(group)
	returned := false
	defer func() {
		if !returned { // the observer has ended the goroutine
			s.giveBack(context.WithoutCancel(g.ctx))
		}
	}()
	for i, name := range g.names {
		x, err := g.locker.acquire(s.work, name, g.turn(i), g.budget(name))
		if err != nil {
			returned = true
			s.giveBack(g.ctx)
			return nil, g.failed(s.work, err)
		}
		x.set, s.leases = together, append(s.leases, x)
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
		if x.root != x { // its outermost holder deals with it
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
		if x.root != x {
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
	case g.cfg.wait == WaitForever:
		return WaitForever
	default:
		return max(0, g.cfg.wait-g.waited())
	}
}

// turn is how to ask for one name. Only the first one has the marker. Until the set is whole, each lease is renewed, and none has a
// limit of time.
func (g *multiAcquire) turn(i int) *config {
	c := *g.cfg
	c.Turn.MaxHold = 0
	c.NoRenewal = false
	if i > 0 {
		c.Dedup = 0
	}
	return c.settled()
}

// mayWait says whether waiting for name cannot close a circle: the caller holds nothing that the
// callers it would wait for can be waiting for. If name is re-entered, only what was taken inside
// the lease that has it counts, because all others who queue for that lease stand outside of it.
func (g *multiAcquire) mayWait(name string) bool {
	r := g.locker.engine
	x := leaseOf(g.ctx)
	greater := false
	for ; x != nil; x = x.outer {
		if x.engine == r && x.want.Name >= name && x.live() {
			if x.want.Name == name && !g.cfg.noReentry {
				return true
			}
			greater = true
		}
		if greater && (x.set == nil || x.outer == nil || x.outer.set != x.set) { // the leases of one set count as one
			return false
		}
	}
	return true
}

// again is the result of a round in which a lease was lost: nil for another round, if there is time
// for one.
func (g *multiAcquire) again(lost string) error {
	if g.cfg.wait != WaitForever && g.waited() >= g.cfg.wait {
		return &unavailableError{"acquire", lost, errLate}
	}
	return nil
}
