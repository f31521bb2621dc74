package backendtest

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// Recovers waits until a name can be locked and unlocked again.
func Recovers(t testing.TB, locks *core.Locker, name string) {
	t.Helper()
	Eventually(t, "the lock service is back", func() bool {
		x, err := locks.TryAcquire(t.Context(), name)
		return err == nil && x.Release(t.Context()) == nil
	})
}

// Grows fails the test unless one fence is larger than another.
func Grows(t testing.TB, fence, before uint64) {
	t.Helper()
	if fence <= before {
		t.Errorf("fence %d after %d", fence, before)
	}
}

// BlackHole cuts off the holder of a name, behind the link, until its TTL is over: its context ends before another process
// gets in. opts are those of the holder, whose TTL is short.
func BlackHole(t testing.TB, link *faultproxy.Proxy, locks, other *core.Locker, opts ...core.Option) {
	t.Helper()
	x := Acquire(t, locks, "name", opts...)
	link.BlackHole(true)
	y := Acquire(t, other, "name")
	if x.Context().Err() == nil {
		t.Error("two holders")
	}
	Is(t, x.Err(), core.ErrLost)
	Grows(t, y.Fence(), x.Fence())
	link.Heal()
	Is(t, x.Release(t.Context()), core.ErrLost)
	OK(t, y.Release(t.Context()))
	Recovers(t, locks, "name")
}

// Breaks breaks a holder's connections, again and again. The lease stands, and is released.
func Breaks(t testing.TB, locks *core.Locker, times int, breaks func()) {
	t.Helper()
	x := Acquire(t, locks, "name", core.WithTTL(10*time.Second), core.WithRenewEvery(200*time.Millisecond))
	for range times {
		breaks()
		Renewed(t, x)
	}
	Eventually(t, "it is released", func() bool { return x.Release(t.Context()) == nil })
}

// Freeze has a server stand still until a lease with a short TTL is lost. One with a long TTL outlives that.
func Freeze(t testing.TB, server *servers.Server, locks *core.Locker, long, short time.Duration) {
	t.Helper()
	x := Acquire(t, locks, "long", core.WithTTL(long), core.WithRenewEvery(200*time.Millisecond))
	y := Acquire(t, locks, "short", core.WithTTL(short))
	server.Pause()
	<-y.Context().Done()
	Is(t, y.Err(), core.ErrLost)
	server.Resume()
	OK(t, x.Err())
	Renewed(t, x)
	OK(t, x.Release(t.Context()))
	Recovers(t, locks, "short")
}
