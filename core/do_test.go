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
		go func() {
			_ = b.locks.Do(b.Context(), "name", func(context.Context) error { runtime.Goexit(); return nil }, dedup)
			b.Error("Do returned")
		}()
		synctest.Wait()
		b.free()
		b.ok(b.locks.Do(b.Context(), "name", noWork, dedup)) // neither counts as done
	})
}

func TestAReleaseSurvivesADeadContextAndFinishEndsAsDoDoes(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		dedup := core.WithDedup(time.Hour)
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		b.ok(b.acquire(b.locks, "name", dedup).Release(ctx))
		b.is(b.acquire(b.locks, "name", dedup).Finish(ctx, errWork), errWork)
		b.ok(b.acquire(b.locks, "name", dedup).Finish(ctx, nil))
		b.is(second(b.locks.TryAcquire(b.Context(), "name", dedup)), core.ErrDuplicate)
		b.is(b.set(b.locks.AcquireAll(b.Context(), pair, dedup)).Finish(ctx, errWork), errWork)
		b.gets(b.locks.AcquireAll(b.Context(), pair, dedup))
		x := b.acquire(b.locks, "other", core.WithoutRenewal())
		<-x.Context().Done()
		b.is(x.Finish(ctx, errWork), errWork, core.ErrLost)
		var none *core.Lease
		b.is(none.Finish(ctx, errWork), errWork, core.ErrInvalid)
	})
}

func TestWrapLocksTheNameOfEachRequestAndReturnsTheValueBesideTheError(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.is(second(core.DoValue[int](b.Context(), b.locks, "name", nil)), core.ErrInvalid)
		b.is(b.locks.Do(b.Context(), "name", nil), core.ErrInvalid)
		noKey := errors.New("no key")
		key := func(_ context.Context, id string) (string, error) {
			if id == "" {
				return "", noKey
			}
			return "order:" + id, nil
		}
		wrapped := core.Wrap(b.locks, key, func(ctx context.Context, id string) (string, error) {
			x, _ := core.FromContext(ctx)
			return x.Name() + " " + id, errWork
		}, core.WithWait(0))
		b.acquire(b.other(), "order:7")
		v, err := wrapped(b.Context(), "42")
		if b.is(err, errWork); v != "order:42 42" {
			b.Errorf("%q", v)
		}
		b.is(second(wrapped(b.Context(), "7")), core.ErrHeld)
		b.is(second(wrapped(b.Context(), "")), noKey)
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
