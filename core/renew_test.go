package core_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// poisoned is a backend that answers nothing for a batch with a certain name in it.
type poisoned struct{ *memlock.Store }

func (p poisoned) Renew(ctx context.Context, claims []driver.Claim) []error {
	if slices.ContainsFunc(claims, func(c driver.Claim) bool { return c.Name == "poison" }) {
		return slices.Repeat([]error{errors.New("poisoned")}, len(claims))
	}
	return p.Store.Renew(ctx, claims)
}

func TestAClaimThatPoisonsItsBatchCostsOnlyItself(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		locks := b.locker(lab.New(poisoned{memlock.New()}))
		victim := b.acquire(locks, "poison")
		leases := make([]*core.Lease, 300)
		for i := range leases {
			leases[i] = b.acquire(locks, fmt.Sprintf("name-%d", i))
		}
		time.Sleep(5 * ttl)
		b.reason(victim, core.ReasonUnreachable)
		for _, x := range leases {
			b.ok(x.Err())
			b.ok(x.Release(b.Context()))
		}
	})
}

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

func TestWhatWasAcquiredTogetherIsRenewedTogether(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		for i := range 100 {
			b.acquire(b.locks, fmt.Sprintf("name-%d", i))
		}
		before := b.link.Calls(lab.OpRenew)
		time.Sleep(3 * ttl)
		if calls := b.link.Calls(lab.OpRenew) - before; calls < 9 || calls > 12 {
			b.Errorf("%d commands for one batch in nine periods", calls)
		}
	})
}

// lostOf counts the leases that are lost, and releases the others.
func (b *bench) lostOf(leases []*core.Lease) (lost int) {
	b.Helper()
	b.link.Delay(0, 0)
	for _, x := range leases {
		if x.Release(b.Context()) != nil {
			lost++
		}
	}
	return lost
}

// After the outage, all of them have failed as often as a claim that poisons its batch.
func TestAfterAnOutageTheRenewalsAreSoonTogetherAgain(t *testing.T) {
	t.Parallel()
	for _, n := range []int{100, 2000} {
		virtual(t, func(b *bench) {
			leases := make([]*core.Lease, n)
			for i := range leases {
				leases[i] = b.acquire(b.locks, fmt.Sprint("name", i))
			}
			b.link.All(lab.Refused, lab.OpRenew)
			time.Sleep(ttl / 2)
			b.link.Delay(ttl/200, ttl/200)
			b.link.All(lab.Delivered, lab.OpRenew)
			before := b.link.Calls(lab.OpRenew)
			time.Sleep(ttl)
			if sent := b.link.Calls(lab.OpRenew) - before; sent > n {
				b.Errorf("%d commands for %d leases", sent, n)
			}
			if lost := b.lostOf(leases); lost > 0 {
				b.Errorf("%d of %d leases are lost", lost, n)
			}
		})
	}
}

// No two of them can share a command.
func TestLeasesOfManyTTLsAreRenewedSideBySide(t *testing.T) {
	t.Parallel()
	const n = 100
	virtual(t, func(b *bench) {
		b.link.Delay(ttl/200, ttl/200)
		leases := make([]*core.Lease, n)
		var granted sync.WaitGroup
		for i := range leases {
			granted.Go(func() {
				leases[i] = b.acquire(b.locks, fmt.Sprint("name", i), core.WithTTL(3*ttl/10+time.Duration(i)*ttl/200))
			})
		}
		granted.Wait()
		time.Sleep(6 * ttl)
		if lost := b.lostOf(leases); lost > 0 {
			b.Errorf("%d of %d leases are lost", lost, n)
		}
	})
}

// sessions is a backend whose leases end with sessions that are shorter than their TTLs, whatever a renewal asks for.
type sessions struct{ *memlock.Store }

const session = ttl / 10

func (s sessions) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g, err := s.Store.Acquire(ctx, c)
	g.TTL, g.Longest = session, session
	return g, err
}

func TestARenewalIsTrustedForNoLongerThanTheBackendGives(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		store := memlock.New()
		x := b.acquire(b.locker(lab.New(sessions{store})), "name")
		for range 30 {
			time.Sleep(session / 3)
			b.ok(x.Err())
			if left := time.Until(x.ValidUntil()); left > session {
				b.Fatalf("trusted for %s", left)
			}
		}
		store.SetDown(true)
		time.Sleep(session)
		b.reason(x, core.ReasonUnreachable)
	})
}
