package core

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
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
	return raise(s.end(ctx, false))
}

// Complete is [Lease.Complete] for all leases of the set: the one that leaves the marker ends once the others have ended. So it can take twice
// as long as for one.
func (s *LeaseSet) Complete(ctx context.Context) error {
	if s.none() {
		return errNoLease
	}
	if s.leases[0].cfg.Dedup == 0 {
		return errors.Join(raise(s.end(ctx, false)), invalidf("Complete of %q: the leases have no WithDedup", s.Names()))
	}
	return raise(s.end(ctx, true))
}

// Finish is [Lease.Finish] for all leases of the set, which end as by Complete or by Release.
func (s *LeaseSet) Finish(ctx context.Context, workErr error) error {
	if s.none() {
		return errors.Join(workErr, errNoLease)
	}
	err := s.end(context.WithoutCancel(ctx), workErr == nil && s.leases[0].cfg.Dedup > 0)
	return joinLoss(workErr, raise(err))
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
	err := s.endAll(ctx, s.leases[1:])
	mark = !slices.ContainsFunc(s.leases, (*Lease).lost)
	return errors.Join(s.leases[0].end(ctx, mark), err)
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
	return errors.Join(errs...)
}

// giveBack ends the leases of a round that was not completed.
func (s *LeaseSet) giveBack(ctx context.Context) {
	if s.none() {
		return
	}
	for _, x := range s.leases {
		if x.root() == x {
			x.hold.Forgo()
		}
	}
	_ = s.end(ctx, false) // told to observer and log
}

// Format prints the names for every verb. It prints no token, so the output may be logged.
func (s *LeaseSet) Format(f fmt.State, _ rune) {
	_, _ = fmt.Fprintf(f, "leases(%q)", s.Names()) // fmt has no way to return the error
}
