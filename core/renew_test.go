package core_test

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"runtime"
	"sync/atomic"
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

// onSilentNode says whether a name is on the one of three nodes that says nothing any more.
func onSilentNode(name string) bool {
	h := fnv.New32a()
	_, _ = h.Write([]byte(name))
	return h.Sum32()%3 == 1
}

// silentNode is a backend of three nodes. Like redislock in a Cluster, it asks each node for its claims, answers when all have answered,
// and without the silent one when seven eighths of the time are over.
func silentNode(b *bench, silent *atomic.Bool) driver.Driver {
	return &hooked{Driver: b.store, renew: func(ctx context.Context, claims []driver.Claim) []error {
		time.Sleep(time.Millisecond)
		errs := b.store.Renew(ctx, claims)
		waits := false
		for i, c := range claims {
			if silent.Load() && onSilentNode(c.Name) {
				errs[i], waits = errors.New("the node has not answered"), true
			}
		}
		if deadline, ok := ctx.Deadline(); ok && waits {
			time.Sleep(time.Until(deadline) * 7 / 8)
		}
		return errs
	}}
}

// A third of the leases are on a node that says nothing any more. They are lost; no other one is.
func TestASilentNodeCostsOnlyTheLeasesThatAreOnIt(t *testing.T) {
	t.Parallel()
	const n = 20_000
	type row struct {
		ttl  time.Duration
		over time.Duration // in which the leases are acquired
		opts []core.NewOption
	}
	each(t, map[string]row{
		"the defaults":               {ttl, 0, nil},
		"renewed late":               {ttl, 0, []core.NewOption{core.WithRenewEvery(2 * ttl / 3)}},
		"a short TTL":                {time.Second, 0, []core.NewOption{core.WithTTL(time.Second)}},
		"of all ages, renewed often": {ttl, 5 * time.Second, []core.NewOption{core.WithRenewEvery(time.Second)}},
	}, func(b *bench, r row) {
		var silent atomic.Bool
		locks, err := core.New(silentNode(b, &silent), r.opts...)
		b.ok(err)
		leases := make([]*core.Lease, n)
		for i, name := range named("name", n) {
			leases[i] = b.acquire(locks, name)
			if i%100 == 99 {
				time.Sleep(r.over / (n / 100))
			}
		}
		silent.Store(true)
		time.Sleep(2 * r.ttl)
		wrong := 0
		for _, x := range leases {
			if lost := x.Err() != nil; lost != onSilentNode(x.Name()) {
				wrong++
			}
		}
		if wrong > 0 {
			b.Errorf("%d leases are lost that are on good nodes, or kept that are on the silent one", wrong)
		}
		ctx, cancel := context.WithCancel(b.Context())
		cancel()
		_ = locks.Close(ctx) // leaves the leases to their TTL
		time.Sleep(ttl)      // what is under way must end in the bubble
	})
}
