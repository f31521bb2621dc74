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
		loses := func(result func(ctx context.Context) error) error {
			err := b.locks.Do(b.Context(), "name", func(ctx context.Context) error {
				b.link.All(lab.Refused, lab.OpRenew)
				<-ctx.Done()
				return result(ctx)
			})
			b.link.All(lab.Delivered)
			time.Sleep(ttl)
			return err
		}
		b.is(loses(noWork), core.ErrLost)
		b.is(loses(func(context.Context) error { return errWork }), core.ErrLost, errWork)
		b.says(loses(func(context.Context) error { return &core.LostError{Name: "another"} }), core.ErrLost, `"name"`)
		if err, ok := loses(context.Cause).(*core.LostError); !ok { //nolint:errorlint // the cause, once
			b.Errorf("the work returned the cause, and Do returned %v", err)
		}
	})
}

func TestWhenTheCallerGoesTheNameStaysLockedUntilTheWorkReturns(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		other := b.other()
		ctx, cancel := context.WithCancelCause(b.Context())
		b.ok(b.locks.Do(ctx, "name", func(work context.Context) error {
			cancel(errWork)
			<-work.Done()
			b.is(context.Cause(work), errWork)
			x, ok := core.FromContext(work)
			if !ok || x.Err() != nil || x.Context().Err() != nil {
				b.Error("the lease ended with the caller")
			}
			for range 10 {
				time.Sleep(ttl)
				b.taken(other, "name")
			}
			return nil
		}))
		b.free()
	})
}

func TestAPanicPassesThroughAfterTheRelease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		dedup := core.WithDedup(time.Hour)
		b.panics("work", func() {
			_ = b.locks.Do(b.Context(), "name", func(context.Context) error { panic("work") }, dedup)
		})
		b.free()
		b.ok(b.locks.Do(b.Context(), "name", noWork, dedup)) // it does not count as done
	})
}

func TestGoexitPassesThroughAfterTheRelease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		go func() {
			_ = b.locks.Do(b.Context(), "name", func(context.Context) error { runtime.Goexit(); return nil })
			b.Error("Do returned")
		}()
		synctest.Wait()
		b.free()
	})
}

func TestAnUnconfirmedReleaseGoesToTheObserverOnly(t *testing.T) {
	t.Parallel()
	var unconfirmed []core.Event
	virtual(t, func(b *bench) {
		b.link.All(lab.RequestLost, lab.OpRelease)
		b.ok(b.locks.Do(b.Context(), "name", noWork, core.WithTemplate("n")))
		synctest.Wait()
		if len(unconfirmed) != 1 || unconfirmed[0].Template != "n" || !errors.Is(unconfirmed[0].Err, core.ErrUnavailable) {
			b.Errorf("%+v", unconfirmed)
		}
	}, observing(observer{Unconfirmed: func(e core.Event) { unconfirmed = append(unconfirmed, e) }}))
}

// A renewal that is under way comes before the release, which Do does not wait for twice.
func TestTheEndOfDoTakesNoLongerThanARelease(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		var ended time.Time
		b.ok(b.locks.Do(b.Context(), "name", func(context.Context) error {
			b.link.All(lab.RequestLost)
			b.eventually("a renewal", func() bool { return b.commands(lab.OpRenew) > 0 })
			ended = time.Now()
			return nil
		}))
		if took := time.Since(ended); took > bound {
			b.Errorf("took %s", took)
		}
	})
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
		b.is(b.set(b.locks.AcquireAll(b.Context(), pair, dedup)).Finish(ctx, errWork), errWork)
		b.gets(b.locks.AcquireAll(b.Context(), pair, dedup))
		x := b.acquire(b.locks, "other", core.WithoutRenewal())
		<-x.Context().Done()
		b.is(x.Finish(ctx, errWork), errWork, core.ErrLost)
	})
}

func TestDoValueReturnsTheValueBesideTheError(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.is(second(core.DoValue[int](b.Context(), b.locks, "name", nil)), core.ErrInvalid)
		b.is(b.locks.Do(b.Context(), "name", nil), core.ErrInvalid)
		b.acquire(b.other(), "held")
		for name, want := range map[string]struct {
			value int
			err   error
		}{"name": {42, errWork}, "held": {0, core.ErrHeld}} {
			v, err := core.DoValue(b.Context(), b.locks, name, func(context.Context) (int, error) { return 42, errWork }, core.WithWait(0))
			if b.is(err, want.err); v != want.value {
				b.Errorf("%s: value %d", name, v)
			}
		}
	})
}

func TestWrapLocksTheNameOfEachRequest(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		key := func(_ context.Context, id string) (string, error) {
			if id == "" {
				return "", errWork
			}
			return "order:" + id, nil
		}
		wrapped := core.Wrap(b.locks, key, func(ctx context.Context, id string) (string, error) {
			x, _ := core.FromContext(ctx)
			return x.Name() + " " + id, nil
		}, core.WithWait(0))
		b.acquire(b.other(), "order:7")
		v, err := wrapped(b.Context(), "42")
		if b.ok(err); v != "order:42 42" {
			b.Errorf("%q", v)
		}
		b.is(second(wrapped(b.Context(), "7")), core.ErrHeld)
		b.is(second(wrapped(b.Context(), "")), errWork)
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
			if err := recovered(func() error { construct(); return errWork }); err == errWork { //nolint:errorlint // as it is
				b.Errorf("%s: no panic", what)
			}
		}
	})
}
