package core_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func TestLeasesAreRenewedTogetherWithoutAGoroutineEach(t *testing.T) { //nolint:paralleltest // it counts all goroutines
	virtual(t, func(b *bench) {
		const n = 1000
		for i := range n {
			b.acquire(b.locks, fmt.Sprintf("name-%d", i))
		}
		synctest.Wait()
		idle := runtime.NumGoroutine()
		before := b.link.Calls(lab.OpRenew)
		time.Sleep(3 * ttl)
		calls := b.link.Calls(lab.OpRenew) - before
		if perLease := float64(calls) / n / (3 * ttl).Seconds(); perLease > 0.02 {
			b.Errorf("%.3f commands for each lease and second", perLease)
		}
		synctest.Wait()
		if more := runtime.NumGoroutine() - idle; more > 50 {
			b.Errorf("%d goroutines more", more)
		}
	})
}

// The leases of a backend may end with sessions that are shorter than their TTLs, whatever a renewal asks for.
func TestARenewalIsTrustedForNoLongerThanTheBackendGives(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		const session = ttl / 10
		x := b.acquire(b.locker(lab.New(&hooked{Driver: b.store, acquire: func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
			g, err := b.store.Acquire(ctx, c)
			g.TTL, g.Longest = session, session
			return g, err
		}})), "name")
		for range 30 {
			time.Sleep(session / 3)
			b.ok(x.Err())
			if left := time.Until(x.ValidUntil()); left > session {
				b.Fatalf("trusted for %s", left)
			}
		}
		b.store.SetDown(true)
		time.Sleep(session)
		b.reason(x, core.ReasonUnreachable)
		b.store.SetDown(false)
	})
}
