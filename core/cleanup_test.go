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
		x := b.lease(b.locks.Acquire(b.Context(), "name", core.WithMinHold(time.Minute)))
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
	names := named("name", 400)
	virtual(t, func(b *bench) {
		b.link.All(lab.ReplyLost, lab.OpAcquire)
		b.link.Delay(10*time.Millisecond, 10*time.Millisecond)
		b.abandon(b.locks, names)
		time.Sleep(time.Second)
		if taken := b.takenOf(names); taken > 0 {
			b.Errorf("%d of %d names are taken after a second", taken, len(names))
		}
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
		calls.Go(func() {
			ctx := b.in(300 * time.Millisecond)
			b.is(second(locks.TryAcquire(ctx, name)), core.ErrUnavailable)
		})
	}
	calls.Wait()
}

// takenOf is how many of the names another process cannot have.
func (b *bench) takenOf(names []string) (n int) {
	there := b.other()
	for _, name := range names {
		if x, err := there.TryAcquire(b.Context(), name); err != nil {
			n++
		} else {
			b.ok(x.Release(b.Context()))
		}
	}
	return n
}

// halfDark is a cluster of which one node says nothing, through a client whose reads end by its own
// time-out and not with their context, as a ClusterClient's do by default.
type halfDark struct {
	*lab.Net
	punctual bool
}

func (h *halfDark) Capabilities() driver.Capabilities {
	can := h.Net.Capabilities()
	can.Punctual = h.punctual
	return can
}

func (h *halfDark) silence(ctx context.Context) error {
	if h.punctual {
		<-ctx.Done()
		return ctx.Err()
	}
	time.Sleep(5 * time.Second)
	return errTimeout
}

var errTimeout = errors.New("read timeout")

func (h *halfDark) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if strings.HasPrefix(c.Name, "dark") {
		return driver.Grant{}, h.silence(ctx)
	}
	return h.Net.Acquire(ctx, c)
}

func (h *halfDark) Release(ctx context.Context, c driver.Claim) error {
	if strings.HasPrefix(c.Name, "dark") {
		return h.silence(ctx)
	}
	return h.Net.Release(ctx, c)
}
func TestADarkNodeDoesNotStopCleanUpAtTheOthers(t *testing.T) {
	t.Parallel()
	for _, punctual := range []bool{true, false} {
		for _, dark := range []int{1, 3, 8} {
			virtual(t, func(b *bench) {
				h := &halfDark{Net: b.link, punctual: punctual}
				locks, err := core.New(h)
				b.ok(err)
				b.link.All(lab.RequestLate, lab.OpAcquire)
				good := named("good", 10)
				b.abandon(locks, slices.Concat(named("dark", dark), good))
				time.Sleep(2 * time.Second)
				b.link.Deliver()
				b.link.All(lab.Delivered)
				time.Sleep(2 * time.Second)
				if taken := b.takenOf(good); taken > 0 {
					b.Errorf("punctual %t, %d dark: %d names at nodes that answer are taken 2 s after their late execution", punctual, dark, taken)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
				defer cancel()
				b.ok(locks.Close(ctx))
			})
		}
	}
}

// The server answers within half a second. 40 calls have left, and are executed late.
func TestCleanUpAtASlowServerIsDoneSoon(t *testing.T) {
	t.Parallel()
	names := named("name", 40)
	virtual(t, func(b *bench) {
		b.link.All(lab.RequestLate, lab.OpAcquire)
		b.link.Delay(225*time.Millisecond, 225*time.Millisecond)
		b.abandon(b.locks, names)
		time.Sleep(3 * time.Second)
		b.link.Deliver()
		time.Sleep(2 * time.Second)
		if taken := b.takenOf(names); taken > 0 {
			b.Errorf("%d of %d names are taken after 2 s", taken, len(names))
		}
	})
}

// The release of a lease with WithMinHold was confirmed. A duplicate of its acquire is executed after that
// time: nothing gives it back.
func TestALateDuplicateBehindAConfirmedMinHoldIsGivenBack(t *testing.T) {
	t.Parallel()
	for _, minHold := range []time.Duration{2 * time.Second, time.Millisecond} {
		virtual(t, func(b *bench) {
			b.link.Next(lab.OpAcquire, lab.RequestLate)
			b.gets(b.locks.Acquire(b.Context(), "name", core.WithMinHold(minHold)))
			time.Sleep(3 * time.Second)
			b.free()
			b.link.Deliver()
			time.Sleep(time.Second)
			if x, err := b.other().TryAcquire(b.Context(), "name"); err != nil {
				b.Errorf("MinHold %s: %v a second after the late execution", minHold, err)
			} else {
				b.ok(x.Release(b.Context()))
			}
		})
	}
}
