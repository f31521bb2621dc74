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

// Clusters as they change in production, under load.

var loaded = []string{"a", "b", "c", "d", "e", "f"} // at all three masters

// slotsOf are the slots of names, and as many others beside each.
func slotsOf(t *testing.T, c *servers.RedisCluster, names []string, beside int) (all []int) {
	t.Helper()
	for _, name := range names {
		at := keySlot(t, c, "holdfast:"+name)
		for slot := at; slot <= min(at+beside, 16383); slot++ {
			all = append(all, slot)
		}
	}
	return slices.Compact(slices.Sorted(slices.Values(all)))
}

// reshard moves slots to a node, from wherever they are.
func reshard(t *testing.T, c *servers.RedisCluster, slots []int, to *servers.Server) {
	t.Helper()
	byOwner := make(map[*servers.Server][]int)
	for _, slot := range slots {
		owner := c.Owner(slot)
		byOwner[owner] = append(byOwner[owner], slot)
	}
	for owner, slots := range byOwner {
		if owner != to {
			c.MoveSlots(slots, owner, to)
		}
	}
}

// held are leases that last while the servers change.
func held(t *testing.T, locks *core.Locker, n int) (all []*core.Lease) {
	t.Helper()
	for i := range n {
		all = append(all, acquire(t, locks, fmt.Sprintf("held-%d", i)))
	}
	return all
}

func TestAReshardingUnderLoadKeepsOneHolderAndEveryLease(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	c := servers.Cluster(t)
	locks, other := clusterLocker(t, dialCluster(t, c, true)), clusterLocker(t, dialCluster(t, c, false))
	leases := held(t, locks, 30)
	w := contend(t, loaded, locks, other)
	slots := slotsOf(t, c, loaded, 20)
	for _, x := range leases {
		slots = append(slots, keySlot(t, c, "holdfast:"+x.Name()))
	}
	for _, to := range c.Nodes[:3] {
		w.flows(t)
		reshard(t, c, slots, to)
		w.flows(t)
	}
	w.undisturbed(t)
	renewedAndReleased(t, leases)
}

func TestAMasterThatJoinsAndLeavesCostsNoLease(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	c := servers.Cluster(t)
	locks, other := clusterLocker(t, dialCluster(t, c, true)), clusterLocker(t, dialCluster(t, c, false))
	leases := held(t, locks, 10)
	w := contend(t, loaded, locks, other)
	w.flows(t)
	slots := slotsOf(t, c, loaded, 0)
	for _, x := range leases {
		slots = append(slots, keySlot(t, c, "holdfast:"+x.Name()))
	}
	joined := c.Add()
	reshard(t, c, slots, joined)
	w.flows(t)
	for _, x := range leases {
		renewed(t, x) // at the new node
	}
	reshard(t, c, slots, c.Nodes[0])
	c.Remove(joined)
	w.flows(t)
	w.undisturbed(t)
	renewedAndReleased(t, leases)
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
	leases := held(t, locks, 30)
	slots := slotsOf(t, c, loaded, 0)
	reshard(t, c, slots, c.Nodes[1])
	at, next := c.Nodes[0], c.Replica(c.Nodes[0])
	ok(t, dial(t, &redis.Options{Addr: at.Addr()}).Wait(t.Context(), 1, 0).Err()) // it has heard of all
	at.Kill()                                                                     // the one that both were told of
	if owner := c.Owner(0); owner != next {
		t.Fatalf("the owner is %s", owner.Addr())
	}
	for _, x := range leases {
		eventually(t, "who has slept finds out who holds what", func() bool {
			_, err := idle.TryAcquire(t.Context(), x.Name())
			return errors.Is(err, core.ErrHeld)
		})
	}
	w := contend(t, loaded, locks, idle)
	w.flows(t)
	w.end()
	renewedAndReleased(t, leases)
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

func TestAReplicaThatIsPromotedInAgreementWhileAScriptRunsCostsNoLease(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	c := servers.Cluster(t)
	locks, other := clusterLocker(t, dialCluster(t, c, true)), clusterLocker(t, dialCluster(t, c, false))
	leases := held(t, locks, 30)
	w := contend(t, loaded, locks, other)
	slot := keySlot(t, c, "holdfast:"+loaded[0])
	for range 3 {
		w.flows(t)
		old := c.Owner(slot)
		next := c.Replica(old)
		done := busy(t, old, "", 500*time.Millisecond)
		var asked time.Time
		eventually(t, "the replica has taken over", func() bool {
			if time.Since(asked) > 2*time.Second { // a request is forgotten after five seconds
				c.Promote(next)
				asked = time.Now()
			}
			return c.Owner(slot) == next
		})
		ok(t, <-done)
	}
	w.flows(t)
	w.end()
	renewedAndReleased(t, leases)
}

// Nobody asks the master, which grants what its replica never hears of. So grants wait for the replica.
func TestAReplicaThatTakesOverWhileAScriptRunsLeavesOneHolder(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	c := servers.Cluster(t)
	replicated := redislock.WithReplicas(1, 2*time.Second)
	locks := clusterLocker(t, dialCluster(t, c, true), replicated)
	other := clusterLocker(t, dialCluster(t, c, false), replicated)
	leases := held(t, locks, 30)
	w := contend(t, loaded, locks, other)
	slot := keySlot(t, c, "holdfast:"+loaded[0])
	for range 2 {
		w.flows(t)
		old := c.Owner(slot)
		next := c.Replica(old)
		done := busy(t, old, "", time.Second)
		c.Promote(next, "TAKEOVER")
		ok(t, <-done)
		if follows := c.Replica(next); follows != old {
			t.Errorf("%s follows", follows.Addr())
		}
	}
	w.flows(t)
	w.end()
	renewedAndReleased(t, leases)
}

// For two seconds and more, Sentinel hears nothing of a master that runs a script, and promotes its replica.
func TestSentinelsThatPromoteAReplicaWhileAScriptRunsLeaveOneHolder(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	s := servers.Sentinel(t, "secret")
	replicated := redislock.WithReplicas(1, 2*time.Second)
	locks := clusterLocker(t, dialSentinel(t, s, "secret"), replicated)
	other := clusterLocker(t, dialSentinel(t, s, "secret"), replicated)
	w := contend(t, loaded, locks, other)
	w.flows(t)
	next := dial(t, &redis.Options{Addr: s.Nodes[1].Addr(), Password: "secret"})
	for range 10 { // a script that was too short by our measure is run again
		if err := <-busy(t, s.Nodes[0], "secret", 8*time.Second); err != nil {
			t.Log(err) // it may have been cut off when the master was demoted
		}
		if strings.Contains(next.Info(t.Context(), "replication").Val(), "role:master") {
			break
		}
	}
	s.AwaitMaster(s.Nodes[1])
	w.flows(t)
}

// A client that reaches no Sentinel goes on with the master that it knows.
func TestAClientThatHearsNothingOfAFailoverKeepsNobodyOut(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	s := servers.Sentinel(t, "secret")
	through, proxies := proxied(t, append(slices.Clone(s.Nodes), s.Sentinels...))
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: servers.MasterName, SentinelAddrs: s.Addrs(), SentinelPassword: "secret", Password: "secret", Dialer: through,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	locks, other := clusterLocker(t, rdb), clusterLocker(t, dialSentinel(t, s, "secret"))
	x := acquire(t, locks, "name", core.WithTTL(time.Minute), core.WithRenewEvery(time.Second))
	ok(t, rdb.Wait(t.Context(), 1, 0).Err()) // the replica has heard of it
	for _, p := range proxies[len(s.Nodes):] {
		p.Refuse(true)
		p.Reset()
	}
	admin := dial(t, &redis.Options{Addr: s.Sentinels[0].Addr(), Password: "secret"})
	ok(t, admin.Do(t.Context(), "sentinel", "failover", servers.MasterName).Err()) // the old master goes on, as a replica
	s.AwaitMaster(s.Nodes[1])
	old := dial(t, &redis.Options{Addr: s.Nodes[0].Addr(), Password: "secret"})
	eventually(t, "the old master is a replica", func() bool { return strings.Contains(old.Info(t.Context(), "replication").Val(), "role:slave") })
	eventually(t, "who hears of it sees the lease", func() bool {
		_, err := other.TryAcquire(t.Context(), "name")
		return errors.Is(err, core.ErrHeld)
	})
	ok(t, x.Err())
	_, err := locks.TryAcquire(t.Context(), "other")
	is(t, err, core.ErrUnavailable)
	t.Log(err)
	for _, p := range proxies {
		p.Heal()
	}
	renewed(t, x) // by the new master
	ok(t, x.Release(t.Context()))
	ok(t, acquire(t, other, "name").Release(t.Context()))
	ok(t, acquire(t, locks, "other").Release(t.Context()))
}
