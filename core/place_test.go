package core_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func TestAThousandWaitersCostThreeCommandsASecond(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		calls := make([]*call, 1000)
		for i := range calls {
			calls[i] = b.call(b.locks)
		}
		const seconds = 60
		sent := b.commands()
		for range 2 * seconds { // one heartbeat is on time for another process, too
			time.Sleep(time.Second / 2)
			b.taken(b.locks, "name")
		}
		if n := b.commands() - sent; n > 3*seconds {
			b.Errorf("%d commands in %d s", n, seconds)
		}
		b.ok(holder.Release(b.Context()))
		sent = b.commands()
		for _, w := range calls {
			b.ok(w.granted().Release(b.Context()))
		}
		if n := b.commands() - sent; n > 1000/256+3 {
			b.Errorf("%d commands for 1000 turns", n)
		}
		b.free()
	})
}

func TestWhatIsGrantedInLineHasItsFullTTLSoon(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		w := b.call(b.locks)
		asked := time.Now()
		time.Sleep(driver.Recheck(ttl) / 2)
		b.ok(holder.Release(b.Context()))
		x := w.granted()
		life := driver.PlaceLife(ttl)
		if until := x.ValidUntil(); until.After(asked.Add(life)) || time.Until(until) < life/3 {
			b.Errorf("trusted until %s, and offered at %s for %s", until, asked, life)
		}
		time.Sleep(life/3 + 10*time.Millisecond) // when it is renewed
		if left := time.Until(x.ValidUntil()); left < ttl*9/10 {
			b.Errorf("%s left", left)
		}
		b.ok(x.Release(b.Context()))
	})
}

// The command with the offer is executed after the one that withdraws it, and nobody here has made
// another offer.
func TestAnOfferThatComesLateIsWithdrawnAgain(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		b.link.Next(lab.OpWait, lab.HeldBack)
		gone, next := b.call(b.locks), b.call(b.locks)
		gone.cancel()
		b.is(gone.failed(), context.Canceled)
		time.Sleep(100 * time.Millisecond) // the next one waits, and makes no offer yet
		b.link.Deliver()
		synctest.Wait()
		b.ok(holder.Release(b.Context()))
		b.ok(next.granted().Release(b.Context()))
		b.free()
	})
}

// The command that withdraws cannot get through at first; the name is granted to who has gone.
func TestAGrantToWhoHasGoneIsGivenBack(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		holder := b.acquire(b.other(), "name")
		gone := b.call(b.locks)
		b.link.All(lab.Refused, lab.OpRelease)
		gone.cancel()
		b.is(gone.failed(), context.Canceled)
		b.ok(holder.Release(b.Context()))
		b.taken(b.other(), "name")
		b.link.Heal()
		time.Sleep(time.Second) // the longest pause of a clean-up
		b.free()
	})
}

// What those who waited were told is no answer to a call that comes once they have left: it asks by itself when the asker, who only
// clears up behind them, has gone. A wait that hangs does not hold it up.
func TestATryAfterTheLastWaiterHasLeftAsksByItself(t *testing.T) {
	t.Parallel()
	each(t, map[string]lab.Fate{"its wait ends": lab.Delivered, "its wait hangs": lab.ReplyHeldBack}, func(b *bench, fate lab.Fate) {
		b.Cleanup(func() { b.link.Deliver() })
		b.acquire(b.other(), "name")
		b.link.All(fate, lab.OpWait)
		gone := b.call(b.locks)
		b.link.Delay(20*time.Millisecond, 20*time.Millisecond)
		gone.cancel()
		synctest.Wait()
		asked := b.link.Calls(lab.OpAcquire)
		b.taken(b.locks, "name")
		b.sent(asked+1, lab.OpAcquire)
	})
}

// hanging is virtual for a process whose client ignores contexts. The first Waits, as many as most says, hang until f is through.
func hanging(t *testing.T, most int64, f func(b *bench, hung, tries *atomic.Int64)) {
	t.Helper()
	virtual(t, func(b *bench) {
		var hung, tries atomic.Int64
		free := make(chan struct{})
		let := sync.OnceFunc(func() { close(free) })
		b.locks = locker(b.T, &hooked{
			Driver: b.store,
			can:    func(can *driver.Capabilities) { can.Punctual, can.Forgets = false, false },
			acquire: func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
				tries.Add(1)
				return b.store.Acquire(ctx, c)
			},
			wait: func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
				if hung.Add(1) > most {
					hung.Add(-1)
					return b.store.Wait(ctx, c)
				}
				<-free
				return driver.Grant{}, errors.New("at last")
			},
		})
		b.Cleanup(let) // also after a failure
		f(b, &hung, &tries)
		let()
		synctest.Wait()
		time.Sleep(time.Minute)
		if left := b.locks.Remains(); len(left) > 0 {
			b.Errorf("left: %v", left)
		}
	})
}

func TestAWaitThatHangsStarvesNobody(t *testing.T) {
	t.Parallel()
	hanging(t, 1<<20, func(b *bench, hung, tries *atomic.Int64) {
		const turns, most = 300, 256
		other := b.other()
		for i := range turns {
			holder := b.acquire(other, "name")
			w := b.call(b.locks)
			time.Sleep(5 * time.Second)
			b.ok(holder.Release(b.Context()))
			time.Sleep(time.Second)
			b.ok(w.granted().Release(b.Context()))
			if n := hung.Load(); n > min(int64(i)+1, most) {
				b.Fatalf("%d Waits hang after %d turns", n, i+1)
			}
		}
		if n := tries.Load(); n > 20*turns {
			b.Errorf("%d attempts", n)
		}
	})
}

// Attempts find the name taken or others first, as long as other processes queue.
func TestAWaitThatHangsIsFollowedByAnotherOneBesideAQueue(t *testing.T) {
	t.Parallel()
	hanging(t, 1, func(b *bench, _, _ *atomic.Int64) {
		stop := make(chan struct{}, 1)
		var others sync.WaitGroup
		for range 3 { // each in a process of its own
			locks := b.other()
			others.Go(func() {
				for len(stop) == 0 {
					b.ok(locks.Do(b.Context(), "name", func(context.Context) error {
						time.Sleep(100 * time.Millisecond)
						return nil
					}))
				}
			})
		}
		time.Sleep(time.Second)
		w := b.call(b.locks)
		time.Sleep(2 * ttl)
		b.ok(w.granted().Release(b.Context()))
		stop <- struct{}{}
		others.Wait()
	})
}
