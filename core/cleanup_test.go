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
	virtual(t, func(b *bench) {
		b.link.Next(lab.OpAcquire, lab.RequestLost)
		x := b.acquire(b.locks, "name", core.WithMinHold(time.Minute))
		b.link.All(lab.RequestLost, lab.OpRelease)
		b.is(x.Release(b.Context()), core.ErrUnavailable)
		b.link.All(lab.Delivered)
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
