package core_test

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// asked is a context whose Err runs code of a test: a point in the middle of a call at which something else happens.
type asked struct {
	context.Context

	calls int
	then  func(call int)
}

func (a *asked) Err() error {
	a.calls++
	a.then(a.calls)
	return a.Context.Err()
}

// Whatever re-enters a lease while it is detached either comes too late, or keeps it from being detached.
func TestNothingReentersBetweenTheCheckOfADetachAndItsEnd(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		for at := 1; at < 4; at++ {
			x := b.acquire(b.locks, "name")
			var y *core.Lease
			ctx := &asked{b.Context(), 0, func(call int) {
				if call == at {
					y, _ = b.locks.TryAcquire(context.WithoutCancel(x.Context()), "name")
				}
			}}
			_, err := x.Detach(ctx, keep)
			if err == nil && y.Err() == nil {
				b.Errorf("at %d: detached, and %v goes on inside", at, y)
			}
			if y != nil {
				_ = y.Release(b.Context())
			}
			_ = x.Release(b.Context())
			time.Sleep(keep)
		}
	})
}

func TestALeaseThatIsStoppedAsItIsDetachedKeepsNothing(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		for at := 1; at <= 2; at++ { // later it has begun to end
			x := b.acquire(b.locks, "name", core.WithMaxHold(time.Second))
			ctx := &asked{b.Context(), 0, func(call int) {
				if call == at {
					time.Sleep(time.Second)
				}
			}}
			b.is(second(x.Detach(ctx, 100*ttl)), core.ErrLost)
			_ = x.Release(b.Context())
			y, err := b.other().Acquire(b.Context(), "name", core.WithWait(2*ttl))
			b.ok(err)
			b.ok(y.Release(b.Context()))
		}
	})
}

// A lease that has re-entered another one lets no sibling in before everything inside of it has ended.
func TestASiblingWaitsForWhatIsLeftInside(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		outer := b.acquire(b.locks, "name")
		one := b.lease(b.locks.TryAcquire(outer.Context(), "name"))
		inside := b.lease(b.locks.TryAcquire(one.Context(), "name"))
		b.ok(one.Release(b.Context()))
		sibling, err := b.locks.TryAcquire(outer.Context(), "name")
		if err == nil && inside.Err() == nil {
			b.Error("two siblings at once")
		}
		b.is(err, core.ErrHeld)
		b.ok(inside.Release(b.Context()))
		_ = sibling.Release(b.Context())
		b.gets(b.locks.TryAcquire(outer.Context(), "name"))
		b.ok(outer.Release(b.Context()))
	})
}

// The context of the lease has nothing of the acquire's end, so what is sent under it has not either.
func TestAHandOffUnderTheLeasesOwnContextOutlivesTheAcquire(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		ctx, cancel := context.WithCancel(b.Context())
		x := b.lease(b.locks.Acquire(ctx, "name"))
		cancel()
		b.ok(x.HandOff(x.Context(), keep, func(ctx context.Context, _ core.Handoff) error {
			time.Sleep(time.Second)
			return ctx.Err()
		}))

		ctx, cancel = context.WithCancel(b.Context())
		x = b.lease(b.locks.Acquire(ctx, "other"))
		cancel()
		b.link.Delay(50*time.Millisecond, 50*time.Millisecond)
		b.ok(x.Release(x.Context()))
	})
}

// bursting is a client whose releases panic after a while.
type bursting struct {
	*memlock.Store

	after time.Duration
}

func (d *bursting) Capabilities() driver.Capabilities {
	can := d.Store.Capabilities()
	can.Punctual = false
	return can
}

func (d *bursting) Release(context.Context, driver.Claim) error {
	time.Sleep(d.after)
	panic("client")
}

// A panic of the client goes on where somebody waits for the result, and nowhere else: it would end the process.
func TestAPanicOfTheClientEndsNoGoroutineOfOurs(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]func(*testing.T, *core.Locker, *bursting){
		"set": func(t *testing.T, l *core.Locker, _ *bursting) {
			s, err := l.AcquireAll(t.Context(), []string{"a", "b", "c"})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_ = s.Release(t.Context())
		},
		"detach": func(t *testing.T, l *core.Locker, d *bursting) {
			d.after = ttl/3 + time.Second
			x, err := l.Acquire(t.Context(), "name")
			if err != nil {
				t.Fatal(err)
			}
			if _, err = x.Detach(t.Context(), keep); !errors.Is(err, core.ErrUnavailable) {
				t.Error(err)
			}
			time.Sleep(2 * ttl)
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				d := &bursting{Store: memlock.New()}
				locks, err := core.New(d, core.WithTTL(ttl), core.WithLogger(nil))
				if err != nil {
					t.Fatal(err)
				}
				end(t, locks, d)
				_ = locks.Close(t.Context())
			})
		})
	}
}

// Whoever asks for the context of a lease as that ends gets one that ends.
func TestAContextThatIsAskedForAsItsLeaseEndsEnds(t *testing.T) {
	t.Parallel()
	locks, err := core.New(memlock.New())
	if err != nil {
		t.Fatal(err)
	}
	for i := range 400000 {
		x, err := locks.TryAcquire(context.Background(), "name")
		if err != nil {
			t.Fatal(err)
		}
		var both sync.WaitGroup
		var ctx context.Context
		spin := i % 400
		both.Go(func() {
			for range spin {
				_ = x.Name()
			}
			ctx = x.Context() //nolint:fatcontext // not derived from ctx
		})
		both.Go(func() { _ = x.Release(context.Background()) })
		both.Wait()
		if ctx.Err() == nil {
			t.Fatal("goes on")
		}
	}
}

// A call that ends in a panic of the client ends its wait, too.
func TestAWaitThatAPanicEndsIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t}
		store := memlock.New()
		holder := b.acquire(locker(t, store), "name")
		waits := 0
		locks, err := core.New(&panickingWait{Store: store}, observing(observer{
			Waiting: func(core.Event) { waits++ }, Waited: func(core.Event) { waits-- },
		}))
		b.ok(err)
		func() {
			defer func() {
				if recover() == nil {
					t.Error("no panic")
				}
			}()
			_, _ = locks.Acquire(b.Context(), "name")
		}()
		b.ok(locks.Close(b.Context()))
		if waits != 0 {
			t.Errorf("%d wait", waits)
		}
		b.ok(holder.Release(b.Context()))
	})
}

// A degraded lease of a set ends without a renewal, as one by itself does.
func TestADegradedSetEndsWithoutRenewal(t *testing.T) {
	t.Parallel()
	falling(t, func(b *bench) {
		local := b.localOnly()
		b.outage(lab.Refused)
		s := b.set(local.AcquireAll(b.Context(), []string{"a", "b"}, core.WithoutRenewal()))
		if !s.Degraded() {
			b.Error("not degraded")
		}
		time.Sleep(ttl + ttl/10)
		b.is(s.Err(), core.ErrLost)
		b.is(s.Release(b.Context()), core.ErrLost)
	})
}

// Two holders: one of this process, who has left, and one of another process, whom the service has named since.
func TestACallIsToldWhoHadTheNameLast(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Delay(time.Millisecond, time.Millisecond)
		other := b.other()
		var all sync.WaitGroup
		work := func(d time.Duration) func(context.Context) error {
			return func(context.Context) error { time.Sleep(d); return nil }
		}
		all.Go(func() { b.ok(b.locks.Do(b.Context(), "a", work(time.Second), core.WithLabel("here"))) })
		synctest.Wait()
		all.Go(func() {
			_, err := b.locks.Acquire(b.Context(), "a", core.WithWait(3*time.Second))
			if held, ok := errors.AsType[*core.HeldError](err); !ok || held.Label != "there" {
				b.Errorf("%v", err)
			}
		})
		time.Sleep(tired)
		all.Go(func() { b.ok(other.Do(b.Context(), "a", work(4*time.Second), core.WithLabel("there"))) })
		all.Wait()
	})
}

// A call that its caller cuts short says nothing about the service. One whose attempt had all of its time does, though its caller leaves
// before anybody else knows.
func TestASilenceCountsIfTheAttemptHadItsTime(t *testing.T) {
	t.Parallel()
	for left, lines := range map[time.Duration]int{time.Second: 0, 2*time.Second + 10*time.Millisecond: 1} {
		text := logging(t, func(b *bench) {
			b.link.Drop(lab.OpAcquire, lab.OpWait)
			ctx := b.in(left)
			b.is(second(b.locks.Acquire(ctx, "name")), core.ErrUnavailable, context.DeadlineExceeded)
			synctest.Wait()
			b.link.Heal()
		})
		count(t, text, map[string]int{"lock service unavailable": lines})
	}
}

// A call that waits for a sibling first, and then for another process, has waited once.
func TestAWaitBehindASiblingAndThenForTheNameIsOne(t *testing.T) {
	t.Parallel()
	waits := 0
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		inside := context.WithoutCancel(x.Context())
		y := b.lease(b.locks.TryAcquire(inside, "name"))
		var all sync.WaitGroup
		all.Go(func() {
			b.ok(b.other().Do(b.Context(), "name", func(context.Context) error { time.Sleep(time.Second); return nil }))
		})
		synctest.Wait()
		all.Go(func() {
			b.gets(b.locks.Acquire(inside, "name"))
		})
		synctest.Wait()
		b.ok(x.Release(b.Context()))
		b.ok(y.Release(b.Context()))
		all.Wait()
		synctest.Wait()
	}, observing(observer{Waiting: func(core.Event) { waits++ }}))
	if waits != 1 { // the other process has another observer
		t.Errorf("%d waits", waits)
	}
}

// The marker of a set stands for the work on all its names. Work of which one name goes on elsewhere is not finished.
func TestNoMarkerIsLeftForASetOfWhichANameIsHandedOff(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		both, dedup := []string{"a", "b"}, core.WithDedup(time.Hour)
		for _, name := range both {
			s := b.set(b.locks.AcquireAll(b.Context(), both, dedup))
			b.is(second(s.Lease(name).Detach(b.Context(), keep)), core.ErrInvalid)
			b.ok(s.Finish(b.Context(), nil))
			b.is(b.locks.DoAll(b.Context(), both, noWork, dedup), core.ErrDuplicate)
			time.Sleep(time.Hour)
		}
	})
}
