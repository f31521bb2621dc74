package drivertest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// coreCases run core on the backend.
var coreCases = []testCase{
	{name: "WorkUnderALeaseNeverOverlaps", crowd: true, run: func(e *env) {
		var (
			wg     sync.WaitGroup
			inside atomic.Int32
			last   atomic.Uint64
			runs   int
		)
		lockers := []*core.Locker{e.locker(e.Driver()), e.locker(e.Driver()), e.locker(e.Driver())}
		for i := range 12 {
			locks := lockers[i%len(lockers)]
			wg.Go(func() {
				for range 10 {
					err := locks.Do(e.Context(), "name", func(ctx context.Context) error {
						if n := inside.Add(1); n != 1 {
							e.Errorf("%d at once", n)
						}
						defer inside.Add(-1)
						if f, err := core.FenceFor(ctx, "name"); err == nil && last.Swap(f) >= f {
							e.Errorf("fence %d does not grow", f)
						}
						runs++ // the race detector watches, too
						return nil
					})
					if err != nil {
						e.Error(err)
					}
				}
			})
		}
		wg.Wait()
		if runs != 120 {
			e.Errorf("%d runs", runs)
		}
	}},
	{name: "TheWatchdogOutlastsTheTTL", run: func(e *env) {
		locks, other := e.briefly(e.locker(e.Driver())), e.locker(e.Driver())
		x, err := locks.Acquire(e.Context(), "name")
		e.noError(err)
		for range 12 {
			time.Sleep(e.ttl / 4)
			if _, err := other.TryAcquire(e.Context(), "name"); !errors.Is(err, core.ErrHeld) {
				e.Fatalf("somebody else: %v", err)
			}
		}
		e.noError(x.Err())
		if err := x.Release(e.Context()); err != nil && e.harness.uneven && errors.Is(err, core.ErrUnavailable) {
			return // with so short a TTL, an attempt has no time to spare for a busy machine
		} else if err != nil {
			e.Fatal(err)
		}
		y, err := other.TryAcquire(e.Context(), "name")
		e.noError(err)
		e.noError(y.Release(e.Context()))
	}},
	{name: "CompletedWorkIsDoneForItsScope", needs: dedups, run: func(e *env) {
		locks := e.locker(e.Driver())
		dedup := []core.Option{core.WithDedup(time.Hour), core.WithDedupScope("pay"), core.WithWait(0)}
		fail := errors.New("failed")
		runs := 0
		work := func(result error) func(context.Context) error {
			return func(context.Context) error { runs++; return result }
		}
		if err := locks.Do(e.Context(), "name", work(fail), dedup...); !errors.Is(err, fail) {
			e.Errorf("failing work: %v", err)
		}
		e.noError(locks.Do(e.Context(), "name", work(nil), dedup...))
		if err := locks.Do(e.Context(), "name", work(nil), dedup...); !errors.Is(err, core.ErrDuplicate) {
			e.Errorf("again: %v", err)
		}
		if runs != 2 {
			e.Errorf("%d runs", runs)
		}
	}},
	{name: "AllWaitersAreServed", crowd: true, run: func(e *env) {
		var wg sync.WaitGroup
		lockers := []*core.Locker{e.locker(e.Driver()), e.locker(e.Driver())}
		var served atomic.Int32
		for i := range 60 {
			wg.Go(func() {
				err := lockers[i%2].Do(e.Context(), "name", func(context.Context) error { served.Add(1); return nil })
				if err != nil {
					e.Error(err)
				}
			})
		}
		wg.Wait()
		if served.Load() != 60 {
			e.Errorf("%d served", served.Load())
		}
	}},
}

// try is TryAcquire of a name that is free. Over uneven connections two commands may take longer than one attempt may:
// there it is Acquire, which makes another one.
func (e *env) try(locks *core.Locker, opts ...core.Option) (*core.Lease, error) {
	e.Helper()
	if e.harness.uneven {
		return locks.Acquire(e.Context(), "name", opts...)
	}
	return locks.TryAcquire(e.Context(), "name", opts...)
}

// locker returns a Locker on d, which ends with the case. Its TTL is the long one.
func (e *env) locker(d driver.Driver) *core.Locker {
	e.Helper()
	locks, err := core.New(d, core.WithTTL(e.longTTL()))
	e.noError(err)
	e.Cleanup(func() {
		if link, ok := d.(*Link); ok {
			link.Heal() // a case that has failed may have left calls that Close would wait for
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = locks.Close(ctx) // a case may have left leases on purpose
		if e.virtual {
			time.Sleep(time.Minute) // what is under way must end in the bubble
		}
	})
	return locks
}

// briefly returns the Locker with the TTL that the case may wait for.
func (e *env) briefly(locks *core.Locker) *core.Locker {
	e.Helper()
	brief, err := locks.With(core.WithTTL(e.ttl))
	e.noError(err)
	return brief
}

// renewed waits for the service to renew the lease once more, from now on.
func (e *env) renewed(x *core.Lease) {
	e.Helper()
	before := x.ValidUntil()
	e.eventually("a renewal", func() bool { return x.Err() != nil || x.ValidUntil().After(before) })
	e.noError(x.Err())
}

// lost fails the case unless x was lost for that reason, and its context says so.
func (e *env) lost(x *core.Lease, reason core.Reason) {
	e.Helper()
	for _, err := range []error{x.Err(), context.Cause(x.Context())} {
		if lost, ok := errors.AsType[*core.LostError](err); !ok || lost.Reason != reason {
			e.Errorf("not lost because %s: %v", reason, err)
		}
	}
}
