package etcdlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/etcdlock"
)

// longTTL outlives what a test does meanwhile.
const longTTL = 30 * time.Second

// world is a server of its own, a Locker behind a proxy, and another with a good connection.
type world struct {
	server *servers.Server
	proxy  *faultproxy.Proxy
	direct *clientv3.Client
	locks  *core.Locker
	other  *core.Locker
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{server: servers.Etcd(t)}
	w.proxy = faultproxy.New(t, w.server.Addr())
	w.direct = dial(t, w.server.Addr())
	w.locks = locker(t, etcdlock.New(dial(t, w.proxy.Addr())))
	w.other = locker(t, etcdlock.New(w.direct))
	ok(t, acquire(t, w.locks, "warm").Release(t.Context()))
	return w
}

// keys are those below a name, "" for all.
func (w *world) keys(t *testing.T, name string) []string {
	t.Helper()
	answer, err := w.direct.Get(t.Context(), "holdfast/"+name, clientv3.WithPrefix(), clientv3.WithKeysOnly())
	ok(t, err)
	keys := make([]string, len(answer.Kvs))
	for i, kv := range answer.Kvs {
		keys[i] = string(kv.Key)
	}
	return keys
}

func (w *world) leases(t *testing.T) int {
	t.Helper()
	answer, err := w.direct.Leases(t.Context())
	ok(t, err)
	return len(answer.Leases)
}

// leaseOf is the lease that keeps the first key below a prefix.
func (w *world) leaseOf(t *testing.T, prefix string) clientv3.LeaseID {
	t.Helper()
	var lease clientv3.LeaseID
	eventually(t, "there is a key below "+prefix, func() bool {
		answer, err := w.direct.Get(t.Context(), prefix, clientv3.WithPrefix())
		ok(t, err)
		if len(answer.Kvs) > 0 {
			lease = clientv3.LeaseID(answer.Kvs[0].Lease)
		}
		return len(answer.Kvs) > 0
	})
	return lease
}

func (w *world) recovers(t *testing.T) {
	t.Helper()
	eventually(t, "the lock service is back", func() bool {
		x, err := w.locks.TryAcquire(t.Context(), "recovered")
		return err == nil && x.Release(t.Context()) == nil
	})
}

func TestInABlackHoleTheContextEndsBeforeAnotherGetsIn(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name", core.WithTTL(ttl))
	w.proxy.BlackHole(true)
	y := acquire(t, w.other, "name")
	if x.Context().Err() == nil {
		t.Error("two holders")
	}
	is(t, x.Err(), core.ErrLost)
	if y.Fence() <= x.Fence() {
		t.Errorf("fence %d after %d", y.Fence(), x.Fence())
	}
	w.proxy.Heal()
	is(t, x.Release(t.Context()), core.ErrLost)
	ok(t, y.Release(t.Context()))
	w.recovers(t)
}

func TestALeaseSurvivesConnectionsThatBreak(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name", core.WithTTL(10*time.Second), core.WithRenewEvery(200*time.Millisecond))
	for range 10 {
		w.proxy.Reset()
		renewed(t, x)
	}
	eventually(t, "it is released", func() bool { return x.Release(t.Context()) == nil })
}

func TestALeaseSurvivesTheServersRestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name", core.WithRenewEvery(200*time.Millisecond))
	w.server.Kill()
	_, err := w.other.TryAcquire(t.Context(), "another")
	is(t, err, core.ErrUnavailable)
	ok(t, x.Err())
	w.server.Restart()
	renewed(t, x)
	eventually(t, "another client is back, and refused", func() bool {
		y, err := w.other.TryAcquire(t.Context(), "name")
		if y != nil {
			t.Fatal("two holders")
		}
		return errors.Is(err, core.ErrHeld)
	})
	ok(t, x.Release(t.Context()))
	y := acquire(t, w.other, "name")
	if y.Fence() <= x.Fence() {
		t.Errorf("fence %d after %d", y.Fence(), x.Fence())
	}
	ok(t, y.Release(t.Context()))
}

func TestAFrozenServerIsTransientUntilTrustEnds(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name", core.WithRenewEvery(200*time.Millisecond))
	y := acquire(t, w.locks, "short", core.WithTTL(ttl))
	w.server.Pause()
	<-y.Context().Done()
	is(t, y.Err(), core.ErrLost)
	w.server.Resume()
	ok(t, x.Err())
	renewed(t, x)
	ok(t, x.Release(t.Context()))
	w.recovers(t)
}

func TestEveryCallReturnsInABlackHole(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name")
	w.proxy.BlackHole(true)
	const bound = 4 * time.Second // of a renewal under way, and of the attempt after it
	within := func(what string, call func(context.Context) error) {
		t.Helper()
		began := time.Now()
		if err := call(context.Background()); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("%s: %v", what, err)
		}
		if took := time.Since(began); took > bound+time.Second { // a second for a busy machine
			t.Errorf("%s took %s", what, took)
		}
	}
	within("TryAcquire", func(ctx context.Context) error { _, err := w.locks.TryAcquire(ctx, "other"); return err })
	within("Release", x.Release)
	store := etcdlock.New(dial(t, w.proxy.Addr()))
	for what, call := range map[string]func(context.Context, driver.Claim) error{
		"Acquire": func(ctx context.Context, c driver.Claim) error { _, err := store.Acquire(ctx, c); return err },
		"Renew":   func(ctx context.Context, c driver.Claim) error { return store.Renew(ctx, []driver.Claim{c})[0] },
		"Release": store.Release,
		"Wait":    func(ctx context.Context, c driver.Claim) error { _, err := store.Wait(ctx, c); return err },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		began := time.Now()
		err := call(ctx, driver.Claim{Name: "name", Token: "token", TTL: ttl})
		cancel()
		if took := time.Since(began); err == nil || errors.Is(err, driver.ErrNotOwner) || took > time.Second {
			t.Errorf("%s: %v after %s", what, err, took)
		}
	}
}

func TestAHolderWhoseLeaseIsRevokedHasLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name", core.WithTTL(ttl))
	_, err := w.direct.Revoke(t.Context(), w.leaseOf(t, "holdfast/name"))
	ok(t, err)
	<-x.Context().Done()
	lost, _ := errors.AsType[*core.LostError](x.Err())
	if lost == nil || lost.Reason != core.ReasonTaken {
		t.Errorf("%v", x.Err())
	}
	ok(t, acquire(t, w.other, "name", core.WithWait(0)).Release(t.Context()))
}

func TestAWaiterNoticesThatItsEntryIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.other, "name")
	got := make(chan error, 1)
	go func() {
		y, err := w.locks.Acquire(t.Context(), "name")
		if err == nil {
			err = y.Release(t.Context())
		}
		got <- err
	}()
	first := w.leaseOf(t, "holdfast/name\x00queue/")
	_, err := w.direct.Revoke(t.Context(), first)
	ok(t, err)
	if w.leaseOf(t, "holdfast/name\x00queue/") == first {
		t.Error("the same entry")
	}
	ok(t, x.Release(t.Context()))
	ok(t, <-got)
}

func TestADeadWaiterLeavesTheQueue(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.other, "name")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	gone := make(chan struct{})
	go func() {
		defer close(gone)
		_, _ = w.locks.Acquire(ctx, "name")
	}()
	w.leaseOf(t, "holdfast/name\x00queue/")
	w.proxy.BlackHole(true) // it cannot even say goodbye
	cancel()
	<-gone
	ok(t, x.Release(t.Context()))
	y := acquire(t, w.other, "name", core.WithWait(longTTL))
	ok(t, y.Release(t.Context()))
	w.proxy.Heal()
}

func TestWaitersAreServedInTheOrderInWhichTheyCame(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	holder := acquire(t, w.other, "name")
	const waiters = 4
	served := make(chan int, waiters)
	var wg sync.WaitGroup
	for i := range waiters {
		locks := locker(t, etcdlock.New(dial(t, w.server.Addr())))
		wg.Go(func() {
			err := locks.Do(t.Context(), "name", func(context.Context) error {
				served <- i
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
		eventually(t, "it is in the queue", func() bool { return len(w.keys(t, "name\x00queue/")) == i+1 })
	}
	ok(t, holder.Release(t.Context()))
	wg.Wait()
	for i := range waiters {
		if who := <-served; who != i {
			t.Errorf("%d is served as number %d", who, i)
		}
	}
}

func TestNothingIsLeftBehind(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var wg sync.WaitGroup
	for i := range 40 {
		locks := []*core.Locker{w.locks, w.other}[i%2]
		wg.Go(func() {
			for range 5 {
				err := locks.Do(t.Context(), fmt.Sprintf("name-%d", i%8), func(context.Context) error { return nil },
					core.WithWait(50*time.Millisecond))
				if err != nil && !errors.Is(err, core.ErrHeld) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	began := time.Now()
	eventually(t, "no key and no lease is left", func() bool { return len(w.keys(t, "")) == 0 && w.leases(t) == 0 })
	if took := time.Since(began); took > longTTL/2 {
		t.Errorf("took %s: they ended with their TTLs", took)
	}
}
