package core_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// The release of a lease with WithMinHold is not answered, nor was one of the commands that
// acquired it. What is repeated to clean up must not free the name before its time.
func TestCleanUpKeepsTheNameForItsMinHold(t *testing.T) {
	t.Parallel()
	each(t, map[string]lab.Fate{
		"a duplicate was lost": lab.RequestLost, "its answer comes late": lab.ReplyHeldBack,
	}, func(b *bench, first lab.Fate) {
		b.link.Next(lab.OpAcquire, first)
		x := b.acquire(b.locks, "name", core.WithMinHold(time.Minute)) // by its second command
		b.link.All(lab.RequestLost, lab.OpRelease)
		b.is(x.Release(b.Context()), core.ErrUnavailable)
		b.link.All(lab.Delivered)
		b.link.Deliver()
		time.Sleep(5 * time.Second)
		b.taken(b.other(), "name")
	})
}

// The replies to many calls are lost at once, as in a failover. Clean-up is answered, but has a way
// of 20 ms there and back.
func TestCleanUpBehindManyCallsIsDoneWithinASecond(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		names := named("name", 400)
		b.link.All(lab.ReplyLost, lab.OpAcquire)
		b.link.Delay(10*time.Millisecond, 10*time.Millisecond)
		b.abandon(b.locks, names)
		time.Sleep(time.Second)
		b.allFree(names)
	})
}

// named are so many names.
func named(what string, n int) (names []string) {
	for i := range n {
		names = append(names, fmt.Sprint(what, "-", i))
	}
	return names
}

// abandon asks for all the names at once, and gives up without an answer.
func (b *bench) abandon(locks *core.Locker, names []string) {
	var calls sync.WaitGroup
	for _, name := range names {
		calls.Go(func() { b.is(second(locks.TryAcquire(b.in(300*time.Millisecond), name)), core.ErrUnavailable) })
	}
	calls.Wait()
}

// allFree fails the test unless another process can have all the names.
func (b *bench) allFree(names []string) {
	b.Helper()
	there := b.other()
	names = slices.DeleteFunc(names, func(name string) bool {
		x, err := there.TryAcquire(b.Context(), name)
		return err == nil && x.Release(b.Context()) == nil
	})
	if len(names) > 0 {
		b.Errorf("%d are taken: %q", len(names), names)
	}
}

// One node of a cluster says nothing. The reads of a client that is not punctual end by its own time-out and not with their context, as a
// ClusterClient's do by default.
func TestADarkNodeDoesNotStopCleanUpAtTheOthers(t *testing.T) {
	t.Parallel()
	for _, punctual := range []bool{true, false} {
		for _, dark := range []int{1, 3, 8} {
			virtual(t, func(b *bench) {
				h := &hooked{Driver: b.link, can: func(can *driver.Capabilities) { can.Punctual = punctual }}
				silence := func(ctx context.Context) error {
					if punctual {
						<-ctx.Done()
						return ctx.Err()
					}
					time.Sleep(5 * time.Second)
					return errors.New("read timeout")
				}
				h.acquire = func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
					if strings.HasPrefix(c.Name, "dark") {
						return driver.Grant{}, silence(ctx)
					}
					return b.link.Acquire(ctx, c)
				}
				h.release = func(ctx context.Context, c driver.Claim) error {
					if strings.HasPrefix(c.Name, "dark") {
						return silence(ctx)
					}
					return b.link.Release(ctx, c)
				}
				b.link.All(lab.RequestLate, lab.OpAcquire)
				good := named("good", 10)
				b.abandon(b.locker(h), slices.Concat(named("dark", dark), good))
				time.Sleep(2 * time.Second)
				b.link.Deliver()
				b.link.All(lab.Delivered)
				time.Sleep(2 * time.Second)
				b.allFree(good)
			})
		}
	}
}

// The server answers within half a second. 40 calls have left, and are executed late.
func TestCleanUpAtASlowServerIsDoneSoon(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		names := named("name", 40)
		b.link.All(lab.RequestLate, lab.OpAcquire)
		b.link.Delay(225*time.Millisecond, 225*time.Millisecond)
		b.abandon(b.locks, names)
		time.Sleep(3 * time.Second)
		b.link.Deliver()
		time.Sleep(2 * time.Second)
		b.allFree(names)
	})
}

// The release of a lease with WithMinHold was confirmed. A duplicate of its acquire is executed after that
// time: nothing gives it back.
func TestALateDuplicateBehindAConfirmedMinHoldIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, minHold := range []time.Duration{2 * time.Second, time.Millisecond} {
		virtual(t, func(b *bench) {
			b.link.Next(lab.OpAcquire, lab.RequestLate)
			b.ok(b.acquire(b.locks, "name", core.WithMinHold(minHold)).Release(b.Context()))
			time.Sleep(3 * time.Second)
			b.free()
			b.link.Deliver()
			time.Sleep(time.Second)
			b.free()
		})
	}
}

// Commands that arrive late, and answers that nobody hears.

// freeWithin fails the test unless the name is free by then.
func (b *bench) freeWithin(d time.Duration, name string) {
	b.Helper()
	other := b.other()
	for end := time.Now().Add(d); ; time.Sleep(10 * time.Millisecond) {
		x, err := other.TryAcquire(b.Context(), name)
		if err == nil {
			b.ok(x.Release(b.Context()))
			return
		}
		if time.Now().After(end) {
			b.Fatalf("%q after %s: %v", name, d, err)
		}
	}
}

func TestAClaimThatArrivesAfterItsCleanUpIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{time.Millisecond, ttl / 2, 9 * ttl / 10} {
		for _, leaves := range []time.Duration{ttl / 10, ttl / 20} { // by its deadline, and by hand
			virtual(t, func(b *bench) {
				b.link.Next(lab.OpAcquire, lab.RequestLate)
				ctx, cancel := context.WithTimeout(b.Context(), ttl/10)
				defer cancel()
				time.AfterFunc(leaves, cancel)
				b.is(second(b.locks.Acquire(ctx, "name")), core.ErrUnavailable, ctx.Err())
				time.Sleep(late) // what was sent to clean up is answered meanwhile
				if n := b.link.Deliver(); n != 1 {
					b.Fatalf("%d late commands", n)
				}
				b.freeWithin(5*time.Second, "name")
			})
		}
	}
}

func TestADuplicateThatArrivesAfterTheReleaseIsGivenBack(t *testing.T) {
	t.Parallel()
	each(t, map[string]lab.Fate{"its reply is lost": lab.RequestLate, "its client hears of it": lab.HeldBack}, func(b *bench, fate lab.Fate) {
		b.link.Next(lab.OpAcquire, fate)
		x := b.acquire(b.locks, "name") // by its second command
		b.ok(x.Release(b.Context()))
		b.link.Deliver() // the first one takes the name with a token that is over
		b.freeWithin(5*time.Second, "name")
	})
}

func TestCleanUpNeverTouchesATokenInUse(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Next(lab.OpAcquire, lab.HeldBack)
		x := b.acquire(b.locks, "name")
		b.link.Deliver() // the duplicate arrives while its token is in use
		time.Sleep(ttl / 2)
		b.ok(x.Err())
		b.sent(0, lab.OpRelease)
		b.ok(x.Release(b.Context()))
		b.freeWithin(0, "name")
	})
}

func TestCallersWhoLeaveAtAnyInstantLeaveNothing(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		b.link.Delay(2*time.Millisecond, 3*time.Millisecond)
		var wg sync.WaitGroup
		names := named("name", 100)
		for i, name := range names {
			wg.Go(func() {
				if x, err := b.locks.Acquire(b.in(time.Duration(i)*100*time.Microsecond), name); err == nil {
					b.ok(x.Release(b.Context()))
				}
			})
		}
		wg.Wait()
		for _, name := range names {
			b.freeWithin(time.Second, name)
		}
	})
}

func TestFailedRenewalsAreRetriedUntilTrustEnds(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		x := b.acquire(b.locks, "name")
		b.link.Next(lab.OpRenew, lab.ReplyReset, lab.Refused, lab.ReplyReset, lab.Refused, lab.ReplyReset, lab.Refused)
		time.Sleep(2 * ttl)
		b.ok(x.Err())
		b.link.All(lab.Refused, lab.OpRenew)
		renewed := x.ValidUntil()
		<-x.Context().Done()
		if now := time.Now(); now.Before(renewed) || now.After(renewed.Add(time.Millisecond)) {
			b.Errorf("ended at %s, trusted until %s", now, renewed)
		}
		b.reason(x, core.ReasonUnreachable)
	})
}
