package backends

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// What befalls a link or a server, as core's callers see it: the same at every backend. What each backend owes to core then is
// in the suite of drivertest.

// ttl is short enough to wait for, and as long as every service allows, on a busy machine.
const ttl = 3 * time.Second

// behindLinks is a service with two processes, one of them behind links that a test breaks.
type behindLinks struct {
	links        []*faultproxy.Proxy
	locks, other *core.Locker
}

// eachLinked runs a test on each backend that has servers, but some. Both processes are connected.
func eachLinked(t *testing.T, test func(t *testing.T, b behindLinks), but ...string) {
	t.Helper()
	for _, b := range all(t) {
		if len(b.addrs) == 0 || slices.Contains(but, b.name) {
			continue
		}
		t.Run(b.name, func(t *testing.T) {
			t.Parallel()
			links, via := proxied(t, b.addrs)
			locks, other := backendtest.Locker(t, b.open(t, via), ttl), backendtest.Locker(t, b.open(t, b.addrs), ttl)
			backendtest.Recovers(t, locks, "name")
			backendtest.Recovers(t, other, "name")
			test(t, behindLinks{links, locks, other})
		})
	}
}

func (b behindLinks) each(do func(link *faultproxy.Proxy)) {
	for _, link := range b.links {
		do(link)
	}
}

func TestALeaseSurvivesConnectionsThatBreak(t *testing.T) {
	t.Parallel()
	eachLinked(t, func(t *testing.T, b behindLinks) {
		x := backendtest.Acquire(t, b.locks, "name", core.WithTTL(10*time.Second), core.WithRenewEvery(200*time.Millisecond))
		for range 5 {
			b.each((*faultproxy.Proxy).Reset)
			backendtest.Renewed(t, x)
		}
		backendtest.Eventually(t, "it is released", func() bool { return x.Release(t.Context()) == nil })
		backendtest.Recovers(t, b.other, "name")
	})
}

func TestInABlackHoleTheContextEndsBeforeAnotherGetsIn(t *testing.T) {
	t.Parallel()
	eachLinked(t, func(t *testing.T, b behindLinks) {
		backendtest.BlackHole(t, b.links, b.locks, b.other)
	}, "ZooKeeper") // whose sessions are long here: core/zklock has this test in a short one
}

// What the server did not hear for a while it is told then, all at once. A lease that was lost meanwhile is not had again, and a
// claim that is executed so late is given back.
func TestAFrozenServerIsTransientUntilTrustEnds(t *testing.T) {
	t.Parallel()
	eachLinked(t, func(t *testing.T, b behindLinks) {
		x := backendtest.Acquire(t, b.locks, "long", core.WithTTL(15*time.Second), core.WithRenewEvery(200*time.Millisecond))
		y := backendtest.Acquire(t, b.locks, "short")
		var thaw []func()
		b.each(func(link *faultproxy.Proxy) { thaw = append(thaw, link.Hold()) })
		ctx, cancel := context.WithTimeout(t.Context(), ttl/10)
		defer cancel()
		_, err := b.locks.TryAcquire(ctx, "late", core.WithTTL(time.Minute))
		backendtest.Is(t, err, core.ErrUnavailable)
		<-y.Context().Done()
		backendtest.Is(t, y.Err(), core.ErrLost)
		for _, let := range thaw {
			let()
		}
		ok(t, x.Err())
		backendtest.Renewed(t, x)
		ok(t, x.Release(t.Context()))
		backendtest.Is(t, y.Release(t.Context()), core.ErrLost)
		backendtest.Recovers(t, b.locks, "short")
		backendtest.Recovers(t, b.other, "late") // long before its TTL is over
	})
}

func TestAServerThatIsDownIsUnavailableAndComesBackWithoutARestartOfOurs(t *testing.T) {
	t.Parallel()
	eachLinked(t, func(t *testing.T, b behindLinks) {
		x := backendtest.Acquire(t, b.other, "held")
		b.each(func(link *faultproxy.Proxy) { link.Refuse(true); link.Reset() })
		for _, name := range []string{"name", "held"} {
			_, err := b.locks.TryAcquire(t.Context(), name)
			backendtest.Is(t, err, core.ErrUnavailable)
		}
		b.each((*faultproxy.Proxy).Heal)
		backendtest.Recovers(t, b.locks, "name")
		backendtest.Eventually(t, "it hears who holds the name", func() bool { // nodes of a quorum clean up first
			_, err := b.locks.TryAcquire(t.Context(), "held")
			return errors.Is(err, core.ErrHeld)
		})
		ok(t, x.Release(t.Context()))
	})
}
