package core_test

import (
	"context"
	"errors"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

var errWork = errors.New("work failed")

func TestDoJoinsALossToTheErrorOfTheWork(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		if err := b.locks.Do(b.Context(), "name", func(context.Context) error { return errWork }); err != errWork { //nolint:errorlint // as it is
			b.Errorf("%v", err)
		}
		for _, result := range []error{nil, errWork} {
			err := b.locks.Do(b.Context(), "name", func(ctx context.Context) error {
				b.link.All(lab.Refused, lab.OpRenew)
				<-ctx.Done()
				b.is(context.Cause(ctx), core.ErrLost)
				return result
			})
			b.is(err, core.ErrLost)
			if result != nil {
				b.is(err, result)
			}
			b.link.All(lab.Delivered)
			time.Sleep(ttl)
		}
		err := b.locks.Do(b.Context(), "name", func(ctx context.Context) error {
			b.link.All(lab.Refused, lab.OpRenew)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		if _, ok := err.(*core.LostError); !ok { //nolint:errorlint // the cause, once
			b.Errorf("the work returned the cause, and Do returned %v", err)
		}
	})
}

func TestWhenTheCallerGoesTheNameStaysLockedUntilTheWorkReturns(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		other := b.other()
		ctx, cancel := context.WithCancelCause(b.Context())
		gone := errors.New("gone")
		err := b.locks.Do(ctx, "name", func(work context.Context) error {
			cancel(gone)
			<-work.Done()
			b.is(context.Cause(work), gone)
			x, ok := core.FromContext(work)
			if !ok || x.Err() != nil || x.Context().Err() != nil {
				b.Error("the lease ended with the caller")
			}
			for range 10 {
				time.Sleep(ttl)
				b.taken(other, "name")
			}
			return nil
		})
		b.ok(err)
		b.ok(b.acquire(other, "name").Release(b.Context()))
	})
}

func TestAPanicPassesThroughAfterTheRelease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		func() {
			defer func() {
				if v := recover(); v != "work" {
					b.Errorf("recovered %v", v)
				}
				b.ok(b.acquire(b.other(), "name").Release(b.Context()))
			}()
			_ = b.locks.Do(b.Context(), "name", func(context.Context) error { panic("work") }, core.WithDedup(time.Hour))
		}()
		ran := false
		b.ok(b.locks.Do(b.Context(), "name", func(context.Context) error { ran = true; return nil }, core.WithDedup(time.Hour)))
		if !ran {
			b.Error("work that panicked counts as done")
		}
	})
}

func TestGoexitPassesThroughAfterTheRelease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		exited := make(chan bool)
		go func() {
			defer close(exited)
			_ = b.locks.Do(b.Context(), "name", func(context.Context) error { runtime.Goexit(); return nil })
			b.Error("Do returned")
		}()
		<-exited
		b.ok(b.acquire(b.other(), "name").Release(b.Context()))
	})
}

func TestAnUnconfirmedReleaseGoesToTheObserverOnly(t *testing.T) {
	t.Parallel()
	var unconfirmed []core.Event
	o := observer{Unconfirmed: func(e core.Event) { unconfirmed = append(unconfirmed, e) }}
	virtual(t, func(b *bench) {
		b.link.All(lab.RequestLost, lab.OpRelease)
		b.ok(b.locks.Do(b.Context(), "name", noWork, core.WithTemplate("n")))
		synctest.Wait()
		if len(unconfirmed) != 1 || unconfirmed[0].Template != "n" || !errors.Is(unconfirmed[0].Err, core.ErrUnavailable) {
			b.Errorf("%+v", unconfirmed)
		}
	}, observing(o))
}

func TestDedupCompletesOnSuccessOnly(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		runs := 0
		do := func(result error, opts ...core.Option) error {
			return b.locks.Do(b.Context(), "name", func(context.Context) error { runs++; return result },
				append([]core.Option{core.WithDedup(time.Hour)}, opts...)...)
		}
		b.is(do(errWork), errWork)
		b.ok(do(nil))
		b.is(do(nil), core.ErrDuplicate)
		b.ok(do(nil, core.WithDedupScope("another")))
		b.ok(do(nil, core.WithDedup(0)))
		if runs != 4 {
			b.Errorf("%d runs", runs)
		}
		time.Sleep(time.Hour)
		b.ok(do(nil))
	})
}

func TestFinishEndsAsDoDoes(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		dedup := core.WithDedup(time.Hour)
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		b.is(b.acquire(b.locks, "name", dedup).Finish(ctx, errWork), errWork)
		b.ok(b.acquire(b.locks, "name", dedup).Finish(ctx, nil))
		b.is(second(b.locks.TryAcquire(b.Context(), "name", dedup)), core.ErrDuplicate)
		x := b.acquire(b.locks, "other", core.WithoutRenewal())
		<-x.Context().Done()
		b.is(x.Finish(ctx, errWork), errWork, core.ErrLost)
	})
}

func TestDoValueReturnsTheValueBesideTheError(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		v, err := core.DoValue(b.Context(), b.locks, "name", func(context.Context) (int, error) { return 42, errWork })
		b.is(err, errWork)
		if v != 42 {
			b.Errorf("value %d", v)
		}
		b.acquire(b.other(), "held")
		v, err = core.DoValue(b.Context(), b.locks, "held", func(context.Context) (int, error) { return 42, nil }, core.WithWait(0))
		b.is(err, core.ErrHeld)
		if v != 0 {
			b.Errorf("value %d of work that did not run", v)
		}
	})
}

func TestWrapLocksTheNameOfEachRequest(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		type request struct{ ID string }
		key := func(_ context.Context, r request) (string, error) {
			if r.ID == "" {
				return "", errWork
			}
			return "order:" + r.ID, nil
		}
		wrapped := core.Wrap(b.locks, key, func(ctx context.Context, r request) (string, error) {
			x, _ := core.FromContext(ctx)
			return x.Name() + " " + r.ID, nil
		}, core.WithWait(0))
		b.acquire(b.other(), "order:7")
		v, err := wrapped(b.Context(), request{"42"})
		b.ok(err)
		if v != "order:42 42" {
			b.Errorf("%q", v)
		}
		_, err = wrapped(b.Context(), request{"7"})
		b.is(err, core.ErrHeld)
		b.is(second(wrapped(b.Context(), request{})), errWork)
	})
}

func TestWrapPanicsAtConstructionOnly(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		key := func(context.Context, int) (string, error) { return "name", nil }
		work := func(context.Context, int) (int, error) { return 0, nil }
		for what, construct := range map[string]func(){
			"nil Locker":   func() { core.Wrap(nil, key, work) },
			"nil key":      func() { core.Wrap(b.locks, nil, work) },
			"nil function": func() { core.Wrap[int, int](b.locks, key, nil) },
			"bad option":   func() { core.Wrap(b.locks, key, work, core.WithTTL(-1)) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						b.Errorf("%s: no panic", what)
					}
				}()
				construct()
			}()
		}
	})
}
