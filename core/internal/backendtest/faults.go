package backendtest

import (
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
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

// BlackHole cuts off the holder of a name, behind some links, until its TTL is over: its context ends before another process
// gets in. opts are those of the holder, whose TTL is short.
func BlackHole(t testing.TB, links []*faultproxy.Proxy, locks, other *core.Locker, opts ...core.Option) {
	t.Helper()
	x := Acquire(t, locks, "name", opts...)
	for _, link := range links {
		link.BlackHole(true)
	}
	y := Acquire(t, other, "name")
	if x.Context().Err() == nil {
		t.Error("two holders")
	}
	Is(t, x.Err(), core.ErrLost)
	if y.Fence() > 0 {
		Grows(t, y.Fence(), x.Fence())
	}
	for _, link := range links {
		link.Heal()
	}
	Is(t, x.Release(t.Context()), core.ErrLost)
	OK(t, y.Release(t.Context()))
	Recovers(t, locks, "name")
}
