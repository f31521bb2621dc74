package core_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// A caller that has gone does not wait, even where answers were quick so far.
func TestAReleaseInAnEndedContextReturnsAtOnce(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		store := memlock.New()
		locks, err := core.New(store)
		b.ok(err)
		for name, acquire := range map[string]func(ctx context.Context) (held, error){
			"one name":      func(ctx context.Context) (held, error) { return locks.Acquire(ctx, "one") },
			"several names": func(ctx context.Context) (held, error) { return locks.AcquireAll(ctx, []string{"a", "b", "c"}) },
		} {
			ctx, cancel := context.WithTimeout(b.Context(), time.Minute)
			x, err := acquire(ctx)
			b.ok(err)
			store.SetDelay(time.Hour)
			cancel()
			began := time.Now()
			if err := x.Release(ctx); err == nil {
				b.Errorf("%s: released, and nothing was answered", name)
			}
			if took := time.Since(began); took > 50*time.Millisecond {
				b.Errorf("%s: it took %v", name, took)
			}
			store.SetDelay(0)
		}
		b.ok(locks.Close(b.Context()))
	})
}

// Its end comes from the release itself, and is no wish of the caller to go.
func TestAReleaseInTheLeasesOwnContextWaitsForTheAnswer(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Delay(100*time.Millisecond, 100*time.Millisecond)
		for what, release := range map[string]func() (func(context.Context) error, context.Context){
			"Release": func() (func(context.Context) error, context.Context) {
				x := b.acquire(b.locks, "a")
				return x.Release, x.Context()
			},
			"Detach": func() (func(context.Context) error, context.Context) {
				x := b.acquire(b.locks, "b")
				return func(ctx context.Context) error { _, err := x.Detach(ctx, keep); return err }, x.Context()
			},
			"a set": func() (func(context.Context) error, context.Context) {
				s := b.set(b.locks.AcquireAll(b.Context(), []string{"c", "d", "e"}))
				return s.Release, s.Context()
			},
		} {
			f, ctx := release()
			b.took(200*time.Millisecond, 0, func() {
				if err := f(ctx); err != nil {
					b.Errorf("%s: %v", what, err)
				}
			})
		}
		b.link.Heal()
	})
}

func TestAReleaseReturnsByItsBound(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		store := memlock.New() // punctual: the first command goes out on the caller's goroutine
		locks, err := core.New(store)
		b.ok(err)
		x := b.acquire(locks, "name")
		store.SetDelay(time.Hour)
		b.took(bound, 0, func() { b.is(x.Release(context.Background()), core.ErrUnavailable) })
		store.SetDelay(0)
		b.ok(locks.Close(b.Context()))
	})
}

func TestALossIsToldThoughItsReleaseIsNotConfirmed(t *testing.T) {
	t.Parallel()
	for _, d := range []time.Duration{bound / 2, time.Minute} {
		virtual(t, func(b *bench) {
			ctx := b.in(time.Second + d)
			err := b.locks.Do(ctx, "name", func(ctx context.Context) error {
				<-ctx.Done()
				b.link.All(lab.RequestLost)
				return nil
			}, core.WithMaxHold(time.Second))
			b.is(err, core.ErrLost)
			b.ok(b.acquire(b.other(), "another").Release(b.Context()))
			b.link.All(lab.Delivered)
			y := b.acquire(b.locks, "third", core.WithMaxHold(time.Second))
			<-y.Context().Done()
			b.link.All(lab.RequestLost)
			ended := b.in(time.Millisecond)
			b.is(y.Release(ended), core.ErrLost)
		})
	}
}

func TestALateDuplicateKeepsTheNameForItsMinHold(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Next(lab.OpAcquire, lab.ReplyHeldBack)
		x := b.lease(b.locks.Acquire(b.Context(), "name", core.WithMinHold(time.Minute))) // by its second command
		b.link.All(lab.Refused, lab.OpRelease)
		b.is(x.Release(b.Context()), core.ErrUnavailable)
		b.link.All(lab.Delivered)
		b.link.Deliver() // the answer to the first one
		time.Sleep(time.Second)
		b.taken(b.other(), "name")
	})
}

// panicking is a backend whose client's hook panics once.
type panicking struct {
	*memlock.Store
	acquire, release atomic.Bool
}

func (p *panicking) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if p.acquire.Swap(false) {
		panic("hook")
	}
	return p.Store.Acquire(ctx, c)
}

func (p *panicking) Release(ctx context.Context, c driver.Claim) error {
	if p.release.Swap(false) {
		panic("hook")
	}
	return p.Store.Release(ctx, c)
}

func TestAPanicOfTheBackendsClientLeavesTheNameToOthers(t *testing.T) {
	t.Parallel()
	for _, opts := range [][]core.Option{nil, {core.WithShared()}, {core.WithWait(0)}} {
		for _, acquiring := range []bool{true, false} {
			virtual(t, func(b *bench) {
				d := &panicking{Store: memlock.New()}
				locks, err := core.New(d)
				b.ok(err)
				b.ok(locks.Do(b.Context(), "name", noWork)) // it is known to be quick now
				d.acquire.Store(acquiring)
				d.release.Store(!acquiring)
				func() {
					defer func() {
						if recover() == nil {
							b.Error("no panic")
						}
					}()
					_ = locks.Do(b.Context(), "name", noWork, opts...)
				}()
				b.gets(locks.Acquire(b.Context(), "name", core.WithWait(ttl)))
				b.ok(locks.Close(b.Context()))
			})
		}
	}
}
