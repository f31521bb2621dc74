package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// clusterTTL outlasts a failover: three seconds until a master counts as dead, and an
// election, on a machine that is busy with something else.
const clusterTTL = 20 * time.Second

func dialCluster(t testing.TB, c *servers.RedisCluster, punctual bool) *redis.ClusterClient {
	t.Helper()
	return warmCluster(t, &redis.ClusterOptions{Addrs: c.Addrs(), ContextTimeoutEnabled: punctual})
}

func warmCluster(t testing.TB, o *redis.ClusterOptions) *redis.ClusterClient {
	t.Helper()
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	rdb := redis.NewClusterClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	// It has to learn the nodes and their commands, which takes longer than short leases last.
	ok(t, rdb.ForEachMaster(t.Context(), func(ctx context.Context, n *redis.Client) error { return n.Ping(ctx).Err() }))
	ok(t, rdb.Eval(t.Context(), "return 1", []string{"a key"}).Err())
	return rdb
}

func TestConformanceOnCluster(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t)
	for _, n := range c.Nodes { // permissions are not replicated
		allow(t, n.Addr(), forClaims, withLooks, withSlots)
	}
	each(t, func(t testing.TB, prefix string) drivertest.Config {
		s := onCluster(t, c, prefix)
		s.Driver = func() driver.Driver { return redislock.New(clusterAsLocks(t, c), redislock.WithPrefix(prefix)) }
		s.Own = func() drivertest.Config {
			c := servers.Cluster(t)
			s := onCluster(t, c, "holdfast:")
			rdb := dialCluster(t, c, true)
			slot := int(rdb.ClusterKeySlot(t.Context(), "holdfast:name").Val())
			master := c.Owner(slot)
			s.Kill = func() {
				inStep(t, dial(t, &redis.Options{Addr: master.Addr()}), "{holdfast:name}:in-step")
				master.Kill()
			}
			s.Restart = func() {
				c.Owner(slot) // the replica has taken over
				master.Restart()
				c.AwaitComplete()
			}
			return s
		}
		return s
	})
}

func TestConformanceOnClusterOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	c := servers.Cluster(t)
	each(t, func(t testing.TB, prefix string) drivertest.Config {
		return behindCluster(t, c, prefix).Uneven(onCluster(t, c, prefix))
	})
}

// onCluster is a service at a Cluster. Nobody hears what is told through its sharded channels, and its keys are at
// several nodes.
func onCluster(t testing.TB, c *servers.RedisCluster, prefix string) drivertest.Config {
	t.Helper()
	s := seen(t, dialCluster(t, c, true), prefix)
	s.Leftovers, s.Messages = nil, nil
	s.Driver = func() driver.Driver { return redislock.New(dialCluster(t, c, true), redislock.WithPrefix(prefix)) }
	s.Through = behindCluster(t, c, prefix).Through
	return s
}

// behindCluster makes processes that reach each node through a proxy.
func behindCluster(t testing.TB, c *servers.RedisCluster, prefix string) backendtest.Process {
	return func() (driver.Driver, []*faultproxy.Proxy) {
		through, proxies := proxied(t, c.Nodes)
		rdb := warmCluster(t, &redis.ClusterOptions{Addrs: c.Addrs(), Dialer: through})
		return redislock.New(rdb, redislock.WithPrefix(prefix)), proxies
	}
}

// proxied dials each server through a proxy of its own.
func proxied(t testing.TB, nodes []*servers.Server) (func(ctx context.Context, network, addr string) (net.Conn, error), []*faultproxy.Proxy) {
	t.Helper()
	proxies := make([]*faultproxy.Proxy, len(nodes))
	instead := make(map[string]string, len(nodes))
	for i, n := range nodes {
		proxies[i] = faultproxy.New(t, n.Addr())
		instead[n.Addr()] = proxies[i].Addr()
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		var d net.Dialer
		return d.DialContext(ctx, network, instead[addr])
	}, proxies
}

// inStep returns once a replica has all that its master had.
func inStep(t testing.TB, rdb *redis.Client, key string) {
	t.Helper()
	conn := rdb.Conn() // WAIT is about what its own connection has written
	defer func() { ok(t, conn.Close()) }()
	ok(t, conn.Set(t.Context(), key, "", time.Minute).Err())
	if n, err := conn.Wait(t.Context(), 1, 0).Result(); err != nil || n < 1 {
		t.Errorf("%d replicas: %v", n, err)
	}
}

// clusterLocker has leases that outlast a failover.
func clusterLocker(t *testing.T, rdb redis.UniversalClient, opts ...redislock.Option) *core.Locker {
	t.Helper()
	locks, err := locker(t, rdb, opts...).With(core.WithTTL(clusterTTL))
	ok(t, err)
	return locks
}

func TestLocksGoOnWhileSlotsMove(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t)
	locks := clusterLocker(t, dialCluster(t, c, true))
	other := clusterLocker(t, dialCluster(t, c, false), redislock.WithReplicas(1, time.Second))
	names := []string{"a", "b", "c"}
	held := make(map[string]*core.Lease)
	for i, name := range names {
		held[name] = acquire(t, []*core.Locker{locks, other}[i%2], "held-"+name, core.WithRenewEvery(ttl/20))
	}
	ctx, stop := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	var turns atomic.Int64
	inside := make([]atomic.Int32, len(names))
	for _, locks := range []*core.Locker{locks, other} {
		for i, name := range names {
			wg.Go(func() {
				for ctx.Err() == nil {
					x, err := locks.Acquire(t.Context(), name)
					if err != nil {
						t.Errorf("%s: %v", name, err)
						return
					}
					if inside[i].Add(1) != 1 {
						t.Errorf("%s: two holders", name)
					}
					turns.Add(1)
					inside[i].Add(-1)
					if err := x.Release(t.Context()); err != nil {
						t.Errorf("%s: %v", name, err)
					}
				}
			})
		}
	}
	for round := range 2 {
		for _, name := range names {
			for _, key := range []string{"holdfast:" + name, "holdfast:held-" + name} {
				at := keySlot(t, c, key)
				a := c.Owner(at)
				b := c.Nodes[round]
				if a == b {
					b = c.Nodes[2]
				}
				c.BeginMove(at, a, b)
				c.MoveKeys(at, 1, a, b)
				renewed(t, held[name])
				before := turns.Load()
				eventually(t, "others have their turns", func() bool { return turns.Load() > before+10 })
				c.EndMove(at, a, b)
			}
		}
	}
	stop()
	wg.Wait()
	for _, x := range held {
		ok(t, x.Release(t.Context()))
	}
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

func keySlot(t testing.TB, c *servers.RedisCluster, key string) int {
	t.Helper()
	return int(dial(t, &redis.Options{Addr: c.Nodes[0].Addr()}).ClusterKeySlot(t.Context(), key).Val())
}

func TestAMasterThatIsKilledCostsOnlyTheTimeUntilItsReplicaTakesOver(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	c := servers.Cluster(t)
	locks, other := clusterLocker(t, dialCluster(t, c, true)), clusterLocker(t, dialCluster(t, c, true))
	var held []*core.Lease
	for i := range 60 { // at all three masters
		held = append(held, acquire(t, locks, fmt.Sprintf("held-%d", i)))
	}
	victim := acquire(t, locks, "victim", core.WithRenewEvery(ttl/10))
	at := keySlot(t, c, "holdfast:victim")
	old := c.Owner(at)
	fence := victim.Fence()
	ok(t, dial(t, &redis.Options{Addr: old.Addr()}).Wait(t.Context(), 1, 0).Err()) // the replica has heard of all
	old.Kill()
	for _, x := range held {
		if c.Owner(keySlot(t, c, "holdfast:"+x.Name())) == old {
			t.Error("a dead node serves")
		}
	}
	renewed(t, victim) // by the new master
	eventually(t, "the other client finds the new master", func() bool {
		_, err := other.TryAcquire(t.Context(), "victim")
		return errors.Is(err, core.ErrHeld)
	})
	renewedAndReleased(t, held)
	ok(t, victim.Release(t.Context()))
	y := acquire(t, other, "victim")
	if y.Fence() <= fence {
		t.Errorf("fence %d after %d", y.Fence(), fence)
	}
	ok(t, y.Release(t.Context()))
}

func TestAGuardedCommandWaitsUntilItsKeysHaveMoved(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t)
	guard := newGuard(t, dialCluster(t, c, true))
	ok(t, guard.Do(t.Context(), 7, "SET", "order:42", "a").Err()) // and its fence, a key of its own
	at := keySlot(t, c, "order:42")
	from, to := c.Owner(at), c.Nodes[0]
	if from == to {
		to = c.Nodes[1]
	}
	c.BeginMove(at, from, to)
	if n := c.MoveKeys(at, 1, from, to); n != 1 {
		t.Fatalf("%d keys moved", n)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if err := guard.Do(ctx, 8, "APPEND", "order:42", "x").Err(); !redis.HasErrorPrefix(err, "TRYAGAIN") {
		t.Errorf("while only part of the keys are there: %v", err)
	}
	got := make(chan error, 1)
	go func() { got <- guard.Do(t.Context(), 8, "APPEND", "order:42", "b").Err() }()
	time.Sleep(50 * time.Millisecond) // it may have been sent by then, or not
	c.EndMove(at, from, to)
	ok(t, <-got)
	wantStale(t, guard.Do(t.Context(), 7, "SET", "order:42", "late").Err(), "order:42", 7, 8)
	if value := guard.Do(t.Context(), 8, "GET", "order:42").Val(); value != "ab" {
		t.Errorf("the value is %q", value)
	}
}

func TestWhatNeedsASlotWholeWaitsUntilItHasMoved(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t)
	store := redislock.New(dialCluster(t, c, true))
	claim := driver.Claim{Name: "name", Token: strings.Repeat("x", 22), TTL: time.Minute}
	_, err := store.Acquire(t.Context(), claim)
	ok(t, err)
	ok(t, store.Release(t.Context(), claim)) // its fence counter stays
	at := keySlot(t, c, "holdfast:name")
	from, to := c.Owner(at), c.Nodes[0]
	if from == to {
		to = c.Nodes[1]
	}
	c.BeginMove(at, from, to)
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := store.Acquire(ctx, claim); !redis.HasErrorPrefix(err, "TRYAGAIN") || !errors.Is(err, driver.ErrNotSent) {
		t.Errorf("while only part of the keys are there: %v", err)
	}
	got := make(chan error, 1)
	go func() {
		_, err := store.Acquire(t.Context(), claim)
		got <- err
	}()
	time.Sleep(50 * time.Millisecond) // it may have been sent by then, or not
	c.EndMove(at, from, to)
	ok(t, <-got)
}

// A node tells of the keys of a slot that moves to it, and sends whoever asks for them to the old node.
func TestMarkersAreShownWhileTheirSlotMoves(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t)
	store := redislock.New(dialCluster(t, c, true))
	claim := driver.Claim{Name: "name", Token: strings.Repeat("x", 22), TTL: time.Minute, Label: "who", Scope: "pay", Dedup: time.Hour}
	_, err := store.Acquire(t.Context(), claim)
	ok(t, err)
	ok(t, store.Release(t.Context(), claim))
	at := keySlot(t, c, "holdfast:name")
	from, to := c.Owner(at), c.Nodes[0]
	if from == to {
		to = c.Nodes[1]
	}
	c.BeginMove(at, from, to)
	if n := c.MoveKeys(at, 10, from, to); n != 2 { // the marker and the fence counter
		t.Fatalf("%d keys moved", n)
	}
	var found []inspect.MarkerInfo
	for info, err := range store.Markers(t.Context(), "") {
		ok(t, err)
		found = append(found, info)
	}
	if len(found) != 1 || found[0].Name != "name" || found[0].Scope != "pay" {
		t.Errorf("%+v", found)
	}
}

// A third of the claims are at a master that stands still. Each of them that is asked for by itself would cost the
// others time.
func TestARenewalOfAllKindsIsHeldUpByNoOtherMaster(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t, "--cluster-node-timeout", "120000") // nobody notices
	for what, opts := range map[string][]redislock.Option{
		"master": {redislock.WithPrefix("m:")}, "replicas": {redislock.WithPrefix("r:"), redislock.WithReplicas(1, time.Second)},
	} {
		stores := dialCluster(t, c, true)
		store := redislock.New(stores, opts...)
		prefix := what[:1] + ":"
		limits := []int{0, driver.Readers, 2}
		const n = 60
		claims := make([]driver.Claim, n)
		for i := range claims {
			claims[i] = claimBy(fmt.Sprint("name-", i), "holder")
			claims[i].TTL, claims[i].Limit = time.Minute, limits[i%3]
			_, err := store.Acquire(t.Context(), claims[i])
			ok(t, err)
		}
		stopped := c.Owner(keySlot(t, c, prefix+"name-0"))
		stopped.Pause()
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		good := 0
		for i, err := range store.Renew(ctx, claims) {
			master, findErr := stores.MasterForKey(t.Context(), prefix+claims[i].Name)
			ok(t, findErr)
			silent := master.Options().Addr == stopped.Addr()
			if (err == nil) == silent {
				t.Errorf("%s: %+v: its master is silent: %v, and it says %v", what, claims[i], silent, err)
			}
			if !silent {
				good++
			}
		}
		if good < n/2 {
			t.Errorf("%s: only %d are at other masters", what, good)
		}
		stopped.Resume()
	}
}

// moving begins to move the slots of names, with all of their keys or none, until the test ends or end is called.
func moving(t testing.TB, c *servers.RedisCluster, keys bool, names ...string) (end func()) {
	t.Helper()
	var ends []func()
	end = func() {
		for _, end := range ends {
			end()
		}
		ends = nil
	}
	t.Cleanup(end)
	for _, name := range names {
		at := keySlot(t, c, name)
		from, to := c.Owner(at), c.Nodes[0]
		if from == to {
			to = c.Nodes[1]
		}
		c.BeginMove(at, from, to)
		ends = append(ends, func() { c.EndMove(at, from, to) })
		if keys && c.MoveKeys(at, 10, from, to) == 0 {
			t.Fatal("no keys moved")
		}
	}
	return end
}

func TestClaimsOfAllKindsAreRenewedAndReleasedWhileTheirSlotsMove(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t)
	for prefix, opts := range map[string][]redislock.Option{"master:": nil, "replicas:": {redislock.WithReplicas(1, time.Second)}} {
		store := redislock.New(dialCluster(t, c, true), append(opts, redislock.WithPrefix(prefix))...)
		for _, keys := range []bool{false, true} {
			claims := []driver.Claim{claimBy("alone", "a"), with(claimBy("shared", "s"), reader), with(claimBy("limited", "l"), permit)}
			names := make([]string, len(claims))
			for i := range claims {
				claims[i].TTL = time.Minute
				_, err := store.Acquire(t.Context(), claims[i])
				ok(t, err)
				names[i] = prefix + claims[i].Name
			}
			end := moving(t, c, keys, names...)
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			ok(t, errors.Join(store.Renew(ctx, claims)...))
			for _, claim := range claims {
				if err := store.Release(ctx, claim); err != nil {
					t.Errorf("%s: keys moved: %v: %s: %v", prefix, keys, claim.Name, err)
				}
			}
			end()
			for _, claim := range claims {
				if info, err := store.Inspect(t.Context(), claim.Name); err != nil || info.Held {
					t.Errorf("%+v, %v", info, err)
				}
				_ = store.Release(t.Context(), claim)
			}
		}
	}
}

func TestNamesAreShownWhileTheirSlotsMove(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t)
	for _, keys := range []bool{false, true} {
		prefix := fmt.Sprintf("%v:", keys)
		store := redislock.New(dialCluster(t, c, true), redislock.WithPrefix(prefix))
		kinds := map[string]inspect.HoldKind{"alone": inspect.HoldExclusive, "shared": inspect.HoldShared, "limited": inspect.HoldLimited, "still": inspect.HoldExclusive}
		var names []string
		for _, claim := range []driver.Claim{claimBy("alone", "a"), with(claimBy("shared", "s"), reader), with(claimBy("limited", "l"), permit), claimBy("still", "s")} {
			claim.TTL, claim.Label = time.Minute, "who"
			_, err := store.Acquire(t.Context(), claim)
			ok(t, err)
			if claim.Name != "still" {
				names = append(names, prefix+claim.Name)
			}
		}
		end := moving(t, c, keys, names...)
		check := func(info inspect.LeaseInfo) {
			t.Helper()
			if !info.Held || info.Kind != kinds[info.Name] || (info.Limit == 2) != (info.Name == "limited") || info.Remaining < 30*time.Second {
				t.Errorf("keys moved: %v: %+v", keys, info)
			}
			if (info.Kind == inspect.HoldExclusive) != (info.Label == "who") || info.Kind == inspect.HoldLimited && info.Fence > 0 {
				t.Errorf("keys moved: %v: %+v", keys, info)
			}
		}
		found := map[string]bool{}
		for info, err := range store.Leases(t.Context(), "") {
			ok(t, err)
			check(info)
			found[info.Name] = true
		}
		if len(found) != len(kinds) {
			t.Errorf("keys moved: %v: %v", keys, found)
		}
		for name := range kinds {
			ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
			defer cancel()
			info, err := store.Inspect(ctx, name)
			ok(t, err)
			check(info)
		}
		end()
	}
}

func TestWithoutScriptsItIsSaidThatASlotMoves(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t)
	store := redislock.NewTx(dialCluster(t, c, true))
	claim := claimBy("name", "holder")
	claim.TTL = time.Minute
	_, err := store.Acquire(t.Context(), claim)
	ok(t, err)
	end := moving(t, c, true, "holdfast:name")
	for what, do := range map[string]func(context.Context) error{
		"a renewal": func(ctx context.Context) error { return store.Renew(ctx, []driver.Claim{claim})[0] },
		"a release": func(ctx context.Context) error { return store.Release(ctx, claim) },
	} {
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		err := do(ctx)
		if !errors.Is(err, driver.ErrNotSent) || !strings.Contains(fmt.Sprint(err), "moving to another node: ASK ") {
			t.Errorf("%s: %v", what, err)
		}
	}
	end()
	ok(t, errors.Join(store.Renew(t.Context(), []driver.Claim{claim})...))
	ok(t, store.Release(t.Context(), claim))
}
