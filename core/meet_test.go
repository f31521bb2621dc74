package core_test

import (
	"context"
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
	for at := 1; at < 4; at++ {
		virtual(t, func(b *bench) {
			x := b.acquire(b.locks, "name")
			var y *core.Lease
			ctx := &asked{b.Context(), 0, func(call int) {
				if call == at {
					y, _ = b.locks.TryAcquire(context.WithoutCancel(x.Context()), "name")
				}
			}}
			if _, err := x.Detach(ctx, keep); err == nil && y.Err() == nil {
				b.Errorf("at %d: detached, and %v goes on inside", at, y)
			}
		})
	}
}

func TestALeaseThatIsStoppedAsItIsDetachedKeepsNothing(t *testing.T) {
	t.Parallel()
	for at := 1; at <= 2; at++ { // later it has begun to end
		virtual(t, func(b *bench) {
			x := b.acquire(b.locks, "name", core.WithMaxHold(time.Second))
			ctx := &asked{b.Context(), 0, func(call int) {
				if call == at {
					time.Sleep(time.Second)
				}
			}}
			b.is(second(x.Detach(ctx, 100*ttl)), core.ErrLost)
			_ = x.Release(b.Context())
			b.gets(b.other().Acquire(b.Context(), "name", core.WithWait(2*ttl)))
		})
	}
}

// A lease that has re-entered another one lets no sibling in before everything inside of it has ended.
func TestASiblingWaitsForWhatIsLeftInside(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		outer := b.acquire(b.locks, "name")
		one := b.lease(b.locks.TryAcquire(outer.Context(), "name"))
		inside := b.lease(b.locks.TryAcquire(one.Context(), "name"))
		b.ok(one.Release(b.Context()))
		b.is(second(b.locks.TryAcquire(outer.Context(), "name")), core.ErrHeld)
		b.ok(inside.Release(b.Context()))
		b.gets(b.locks.TryAcquire(outer.Context(), "name"))
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
	})
}

// A panic of the client goes on where somebody waits for the result, and nowhere else: it would end the process.
func TestAPanicOfTheClientEndsNoGoroutineOfOurs(t *testing.T) {
	t.Parallel()
	type row struct {
		after time.Duration // how late a release panics
		end   func(b *bench)
	}
	each(t, map[string]row{
		"set": {0, func(b *bench) {
			s := b.all(b.locks, "a", "b", "c")
			b.panics("client", func() { _ = s.Release(b.Context()) })
		}},
		"detach": {ttl/3 + time.Second, func(b *bench) {
			b.is(second(b.acquire(b.locks, "name").Detach(b.Context(), keep)), core.ErrUnavailable)
			time.Sleep(2 * ttl)
		}},
	}, func(b *bench, r row) {
		b.locks = b.locker(&hooked{Driver: b.link, release: func(context.Context, driver.Claim) error {
			time.Sleep(r.after)
			panic("client")
		}})
		r.end(b)
	})
}

// Whoever asks for the context of a lease as that ends gets one that ends.
func TestAContextThatIsAskedForAsItsLeaseEndsEnds(t *testing.T) {
	t.Parallel()
	b := &bench{T: t}
	locks := locker(t, memlock.New())
	for i := range 400000 {
		x := b.lease(locks.TryAcquire(context.Background(), "name"))
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

// One of this process, who has left, or one of another process, whom the service has named since.
func TestACallIsToldWhoHadTheNameLast(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Delay(time.Millisecond, time.Millisecond)
		here := b.acquire(b.locks, "name", core.WithLabel("here"))
		waiter := b.call(b.locks, core.WithWait(3*time.Second))
		time.Sleep(tired)
		there := b.call(b.other(), core.WithLabel("there"))
		time.Sleep(time.Second)
		b.ok(here.Release(b.Context()))
		<-there.over
		<-waiter.over
		if held := b.heldBy(waiter.err); held.Label != "there" {
			b.Errorf("%v", held)
		}
	})
}

// That this process had the name before the call began says nothing of who has it now.
func TestWhoHadTheNameBeforeACallIsNoAnswerToIt(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		b.call(b.locks)
		time.Sleep(tired)
		b.link.Drop(lab.OpAcquire, lab.OpWait)
		b.ok(x.Release(b.Context()))
		time.Sleep(time.Millisecond)
		err := second(b.locks.Acquire(b.Context(), "name", core.WithWait(time.Second/10)))
		b.is(err, core.ErrUnavailable)
		b.isNot(err, core.ErrHeld)
	})
}

// A call that its caller cuts short says nothing about the service. One whose attempt had all of its time does, though its caller leaves
// before anybody else knows.
func TestASilenceCountsIfTheAttemptHadItsTime(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		fate  lab.Fate
		left  time.Duration
		lines int
	}{
		{lab.RequestLost, time.Second, 0}, {lab.RequestLost, 2*time.Second + 10*time.Millisecond, 1},
		{lab.Refused, 5 * time.Millisecond, 1}, // an error is no silence
	} {
		text := logging(t, func(b *bench) {
			b.link.All(row.fate)
			ctx, cancel := context.WithCancel(b.Context())
			time.AfterFunc(row.left, cancel)
			b.is(second(b.locks.Acquire(ctx, "name")), core.ErrUnavailable, context.Canceled)
			synctest.Wait()
			b.link.Heal()
		})
		count(t, text, map[string]int{"lock service unavailable": row.lines})
	}
}

// A call that waits for a sibling first, and then for another process, has waited once.
func TestAWaitBehindASiblingAndThenForTheNameIsOne(t *testing.T) {
	t.Parallel()
	waits, long := 0, 0
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		inside := context.WithoutCancel(x.Context())
		y := b.lease(b.locks.TryAcquire(inside, "name"))
		other := b.call(b.other())
		b.is(second(b.locks.TryAcquire(inside, "name")), core.ErrHeld) // who tries does not wait
		waiter := b.callWith(inside, b.locks)
		time.Sleep(4 * ttl)
		synctest.Wait()
		if waits != 1 || long != 1 {
			b.Errorf("behind a sibling: %d waits, of which %d are long", waits, long)
		}
		b.ok(x.Release(b.Context()))
		b.ok(y.Release(b.Context()))
		time.Sleep(ttl)
		b.ok(other.granted().Release(b.Context()))
		waiter.granted()
		if waits != 1 || long != 1 { // the other process has another observer
			b.Errorf("%d waits, of which %d are long", waits, long)
		}
	}, observing(observer{core.EventWaiting: func(core.Event) { waits++ }, core.EventLongWait: func(core.Event) { long++ }}))
}

// The marker of a set stands for the work on all its names. Work of which one name goes on elsewhere is not finished.
func TestNoMarkerIsLeftForASetOfWhichANameIsHandedOff(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		dedup := core.WithDedup(time.Hour)
		for _, name := range pair {
			s := b.set(b.locks.AcquireAll(b.Context(), pair, dedup))
			b.is(second(s.Lease(name).Detach(b.Context(), keep)), core.ErrInvalid)
			one := b.set(b.locks.AcquireAll(b.Context(), []string{"one"}, dedup, core.WithDedupScope(name)))
			b.detach(one.Lease("one")) // which is all of it
			time.Sleep(keep)
			b.ok(s.Finish(b.Context(), nil))
			b.is(b.locks.DoAll(b.Context(), pair, noWork, dedup), core.ErrDuplicate)
			time.Sleep(time.Hour)
			s = b.set(b.locks.AcquireAll(b.Context(), pair)) // nobody has to know whether this work was finished
			b.detach(s.Lease(name))
			b.ok(s.Release(b.Context()))
			time.Sleep(keep)
		}
	})
}

// The work of the set is finished, and not that of the lease that it has re-entered.
func TestASetLeavesNoMarkerOfALeaseThatItReenters(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		dedup := core.WithDedup(time.Hour)
		x := b.acquire(b.locks, "a", dedup)
		b.ok(b.set(b.locks.AcquireAll(x.Context(), pair)).Finish(b.Context(), nil))
		b.ok(x.Release(b.Context()))
		y := b.acquire(b.locks, "b")
		b.ok(b.set(b.locks.AcquireAll(y.Context(), pair, dedup)).Complete(b.Context())) // the marker is of all, and at the first name
		b.ok(y.Release(b.Context()))
		b.gets(b.locks.TryAcquire(b.Context(), "a", dedup))
	})
}
