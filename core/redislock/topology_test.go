package redislock_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
)

var loaded = []string{"a", "b", "c", "d", "e", "f"} // at all three masters of a Cluster

func contend(t *testing.T, lockers ...*core.Locker) *backendtest.Contention {
	t.Helper()
	return backendtest.Contend(t, loaded, lockers)
}

// leases are held while the servers change.
func leases(t *testing.T, locks *core.Locker, n int) (all []*core.Lease) {
	t.Helper()
	for i := range n {
		all = append(all, acquire(t, locks, fmt.Sprintf("held-%d", i), core.WithRenewEvery(ttl/2)))
	}
	return all
}

// renewedAndReleased checks that leases are renewed, from now on.
func renewedAndReleased(t *testing.T, held []*core.Lease) {
	t.Helper()
	before := make([]time.Time, len(held))
	for i, x := range held {
		before[i] = x.ValidUntil()
	}
	for i, x := range held {
		eventually(t, "a renewal", func() bool { return x.Err() != nil || x.ValidUntil().After(before[i]) })
		ok(t, x.Release(t.Context()))
	}
}

// reshard moves the slots of names to a node, and some beside each, from wherever they are.
func reshard(t *testing.T, c *servers.RedisCluster, held []*core.Lease, beside int, to *servers.Server) {
	t.Helper()
	names := slices.Clone(loaded)
	for _, x := range held {
		names = append(names, x.Name())
	}
	byOwner := make(map[*servers.Server][]int)
	for _, name := range names {
		at := keySlot(t, c, "holdfast:"+name)
		for slot := at; slot <= min(at+beside, 16383); slot++ {
			if owner := c.Owner(slot); owner != to && !slices.Contains(byOwner[owner], slot) {
				byOwner[owner] = append(byOwner[owner], slot)
			}
		}
	}
	for owner, slots := range byOwner {
		c.MoveSlots(slots, owner, to)
	}
}

// Clusters as they change in production, under load.
func TestAClusterThatChangesUnderLoadKeepsOneHolderAndEveryLease(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	type world struct {
		c      *servers.RedisCluster
		w      *backendtest.Contention
		leases []*core.Lease
	}
	for what, row := range map[string]struct {
		undisturbed bool
		opts        []redislock.Option // of both
		change      func(t *testing.T, x world)
	}{
		"a master that joins and leaves": {undisturbed: true, change: func(t *testing.T, x world) {
			t.Helper()
			joined := x.c.Add()
			reshard(t, x.c, x.leases, 20, joined)
			x.w.GoOn("now")
			for _, lease := range x.leases {
				renewed(t, lease) // at the new node
			}
			reshard(t, x.c, x.leases, 20, x.c.Nodes[0])
			x.c.Remove(joined)
		}},
		// Nobody asks the master, which grants what its replica never hears of. So grants wait for the replica.
		"a replica that takes over while a script runs": {opts: []redislock.Option{redislock.WithReplicas(1, 2*time.Second)}, change: func(t *testing.T, x world) {
			t.Helper()
			slot := keySlot(t, x.c, "holdfast:"+loaded[0])
			for range 2 {
				old := x.c.Owner(slot)
				next := x.c.Replica(old)
				done := busy(t, old, "", time.Second)
				x.c.Promote(next, "TAKEOVER")
				ok(t, <-done)
				if follows := x.c.Replica(next); follows != old {
					t.Errorf("%s follows", follows.Addr())
				}
				x.w.GoOn("now")
			}
		}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			x := world{c: servers.Cluster(t)}
			locks, other := clusterLocker(t, dialCluster(t, x.c, true), row.opts...), clusterLocker(t, dialCluster(t, x.c, false), row.opts...)
			x.leases, x.w = leases(t, locks, 20), contend(t, locks, other)
			x.w.GoOn("now")
			row.change(t, x)
			x.w.GoOn("now")
			if n := x.w.End(); row.undisturbed && n > 0 {
				t.Errorf("%d calls found the service unavailable", n)
			}
			renewedAndReleased(t, x.leases)
		})
	}
}

// The client asks for the topology only when something is wrong. It knows one node, by which it found the others.
func TestAClientWhoseTopologyIsStaleFindsTheNewOne(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	c := servers.Cluster(t)
	stale := func() *core.Locker {
		return clusterLocker(t, warmCluster(t, &redis.ClusterOptions{
			Addrs: c.Addrs()[:1], ContextTimeoutEnabled: true, ClusterStateReloadInterval: time.Hour,
		}))
	}
	locks, idle := stale(), stale()
	held := leases(t, locks, 10)
	at := c.Nodes[0]
	ok(t, dial(t, &redis.Options{Addr: at.Addr()}).Wait(t.Context(), 1, 0).Err()) // it has heard of all
	at.Kill()                                                                     // the one that both were told of
	c.Owner(0)                                                                    // the replica has taken over
	for _, x := range held {
		heldBy(t, idle, x.Name()) // who has slept finds out who holds what
	}
	renewedAndReleased(t, held)
}

// heldBy waits until a process hears that a name is held.
func heldBy(t *testing.T, locks *core.Locker, name string) {
	t.Helper()
	eventually(t, "it hears who holds "+name, func() bool {
		_, err := locks.TryAcquire(t.Context(), name)
		return errors.Is(err, core.ErrHeld)
	})
}

// busy has a server run a script for about d, in the background. Scripts have no clock that goes on meanwhile.
func busy(t *testing.T, s *servers.Server, password string, d time.Duration) (done chan error) {
	t.Helper()
	rdb := dial(t, &redis.Options{Addr: s.Addr(), Password: password, ReadTimeout: time.Minute, MaxRetries: -1})
	ok(t, rdb.Ping(t.Context()).Err())
	const loop, sample = "for _ = 1, ARGV[1] do end return 1", 5_000_000
	began := time.Now()
	ok(t, rdb.Eval(t.Context(), loop, nil, sample).Err())
	rounds := int(sample * d.Seconds() / time.Since(began).Seconds())
	done = make(chan error, 1)
	go func() { done <- rdb.Eval(t.Context(), loop, nil, rounds).Err() }()
	return done
}

func dialSentinel(t testing.TB, s *servers.RedisSentinel, password string, through dialer) *redis.Client {
	t.Helper()
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: servers.MasterName, SentinelAddrs: s.Addrs(), SentinelPassword: password, Password: password, Dialer: through,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestAFailoverBySentinelIsSurvived(t *testing.T) {
	t.Parallel()
	s := servers.Sentinel(t, "secret")
	rdb := dialSentinel(t, s, "secret", nil)
	locks, other := clusterLocker(t, rdb), clusterLocker(t, dialSentinel(t, s, "secret", nil))
	held := leases(t, locks, 20)
	got := next(t, other, held[0].Name())    // waits over the failover
	ok(t, rdb.Wait(t.Context(), 1, 0).Err()) // the replica has heard of all
	s.Nodes[0].Kill()
	s.AwaitMaster(s.Nodes[1])
	for _, locks := range []*core.Locker{locks, other} {
		heldBy(t, locks, held[1].Name())
	}
	last := held[len(held)-1].Fence()
	renewedAndReleased(t, held)
	ok(t, <-got)
	// What a replica has not heard of before it is promoted is lost, and its holder is told.
	x := acquire(t, locks, "forgotten", core.WithRenewEvery(ttl/10))
	ok(t, dial(t, &redis.Options{Addr: s.Nodes[1].Addr(), Password: "secret"}).Del(t.Context(), "holdfast:forgotten").Err())
	<-x.Context().Done()
	is(t, x.Err(), core.ErrLost)
	z := acquire(t, other, "forgotten")
	grows(t, x.Fence(), last)
	grows(t, z.Fence(), x.Fence())
	ok(t, z.Release(t.Context()))
	_, err := locker(t, dialSentinel(t, s, "wrong", nil)).TryAcquire(t.Context(), "name") // without the password no Sentinel answers
	is(t, err, core.ErrUnavailable)
}

// follow starts a replica and waits until it is in step.
func follow(t *testing.T, master *servers.Server) *servers.Server {
	t.Helper()
	replica := servers.Redis(t, "--replicaof", strings.Replace(master.Addr(), ":", " ", 1))
	rdb := dial(t, &redis.Options{Addr: master.Addr()})
	eventually(t, "the replica follows", func() bool {
		return strings.Contains(rdb.Info(t.Context(), "replication").Val(), "state=online")
	})
	return replica
}
