package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
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
	o.MaintNotificationsConfig = quiet
	rdb := redis.NewClusterClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	// It has to learn the nodes and their commands, which takes longer than short leases last.
	eventually(t, "the nodes are known", func() bool {
		return rdb.ForEachMaster(t.Context(), func(ctx context.Context, n *redis.Client) error { return n.Ping(ctx).Err() }) == nil
	})
	ok(t, rdb.Eval(t.Context(), "return 1", []string{"holdfast:"}).Err())
	return rdb
}

// clusterLocker has leases that outlast a failover.
func clusterLocker(t testing.TB, rdb redis.UniversalClient, opts ...redislock.Option) *core.Locker {
	t.Helper()
	return backendtest.Locker(t, redislock.New(rdb, opts...), clusterTTL)
}

func keySlot(t testing.TB, c *servers.RedisCluster, key string) int {
	t.Helper()
	return int(dial(t, &redis.Options{Addr: c.Nodes[0].Addr()}).ClusterKeySlot(t.Context(), key).Val())
}

// moving begins to move the slots of some keys, and a few of the keys there, until the test ends or end is called.
func moving(t testing.TB, c *servers.RedisCluster, few int, keys ...string) (end func()) {
	t.Helper()
	var ends []func()
	end = func() {
		for _, end := range ends {
			end()
		}
		ends = nil
	}
	t.Cleanup(end)
	for _, key := range keys {
		at := keySlot(t, c, key)
		from, to := c.Owner(at), c.Nodes[0]
		if from == to {
			to = c.Nodes[1]
		}
		c.BeginMove(at, from, to)
		ends = append(ends, func() { c.EndMove(at, from, to) })
		if few > 0 && c.MoveKeys(at, few, from, to) == 0 {
			t.Fatal("no keys moved")
		}
	}
	return end
}

const allKeys = 100

// A slot moves key by key. Meanwhile commands wait, or do with the keys that they need.
func TestWhileASlotMovesNothingIsLostOrToldWrong(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t)
	for _, n := range c.Nodes {
		allow(t, n.Addr(), forClaims, withLooks, withSlots, withWait)
	}
	for what, does := range map[string]func(t *testing.T, rdb *redis.ClusterClient, prefix string){
		"what needs it whole waits": func(t *testing.T, rdb *redis.ClusterClient, prefix string) {
			s, c1 := store(t, rdb, redislock.WithPrefix(prefix)), claim("name", "x")
			grant(t, s, c1)
			release(t, s, c1) // its fence counter stays
			waitsFor(t, moving(t, c, 0, prefix+"name"), func(ctx context.Context) error { return acquireWith(ctx, s, c1) }, driver.ErrNotSent)
		},
		"a guarded command waits": func(t *testing.T, _ *redis.ClusterClient, prefix string) {
			guard, key := newGuard(t, dialCluster(t, c, true)), prefix+"order:42"
			ok(t, guard.Do(t.Context(), 7, "SET", key, "a").Err()) // and its fence, a key of its own
			waitsFor(t, moving(t, c, 1, key), func(ctx context.Context) error { return guard.Do(ctx, 8, "APPEND", key, "b").Err() }, nil)
			wantStale(t, guard.Do(t.Context(), 7, "SET", key, "late").Err(), key, 7, 8)
			if value := guard.Do(t.Context(), 8, "GET", key).Val(); value != "ab" {
				t.Errorf("the value is %q", value)
			}
		},
		"markers are shown": func(t *testing.T, rdb *redis.ClusterClient, prefix string) { // a node tells of keys, and sends whoever asks to the old node
			s, c1 := store(t, rdb, redislock.WithPrefix(prefix)), claim("name", "x", dedups)
			grant(t, s, c1)
			release(t, s, c1)
			moving(t, c, allKeys, prefix+"name")
			var found []inspect.MarkerInfo
			for info, err := range s.Markers(t.Context(), "") {
				ok(t, err)
				found = append(found, info)
			}
			if len(found) != 1 || found[0].Name != "name" || found[0].Scope != "pay" {
				t.Errorf("%+v", found)
			}
		},
		"claims are renewed, shown and released": func(t *testing.T, rdb *redis.ClusterClient, prefix string) {
			for few, moved := range map[int]string{0: "none", allKeys: "all"} {
				for _, opts := range [][]redislock.Option{nil, {redislock.WithReplicas(1, time.Second)}} {
					keptInMove(t, c, rdb, few, fmt.Sprint(prefix, moved, len(opts), ":"), opts...)
				}
			}
		},
	} {
		t.Run(what, func(t *testing.T) { // one after the other: they move slots of one cluster
			does(t, clusterAsLocks(t, c, nil), "holdfast:"+strings.ReplaceAll(what, " ", "-")+":")
		})
	}
}

// waitsFor fails the test unless a command is told to wait for the end of a move, and is executed once that has come.
func waitsFor(t *testing.T, end func(), do func(ctx context.Context) error, also error) {
	t.Helper()
	eventually(t, "it is told that it has to wait", func() bool { // a busy machine may leave it without an answer
		ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
		defer cancel()
		err := do(ctx)
		if err == nil {
			t.Fatal("it was executed while only part of the keys are there")
		}
		return redis.HasErrorPrefix(err, "TRYAGAIN") && (also == nil || errors.Is(err, also))
	})
	got := make(chan error, 1)
	go func() { got <- do(t.Context()) }() // it may be sent before the end, or not
	end()
	ok(t, <-got)
}

// keptInMove has claims of all kinds renewed, shown and released while their slots move, with none of their keys, or all.
func keptInMove(t *testing.T, c *servers.RedisCluster, rdb *redis.ClusterClient, few int, prefix string, opts ...redislock.Option) {
	t.Helper()
	s := store(t, rdb, append(opts, redislock.WithPrefix(prefix))...)
	holds := map[string]inspect.HoldKind{"exclusive": inspect.HoldExclusive, "shared": inspect.HoldShared, "limited": inspect.HoldLimited, "still": inspect.HoldExclusive}
	claims := []driver.Claim{claim("still", "still", labelled)}
	grant(t, s, claims[0])
	for kind, of := range kinds {
		claims = append(claims, claim(kind, kind, of, labelled))
		grant(t, s, claims[len(claims)-1])
	}
	var keys []string
	for _, one := range claims[1:] {
		keys = append(keys, prefix+one.Name)
	}
	end := moving(t, c, few, keys...)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	ok(t, errors.Join(s.Renew(ctx, claims)...))
	shown := list(t, s, "")
	for name, kind := range holds {
		info, err := s.Inspect(ctx, name)
		ok(t, err)
		for _, info := range []inspect.LeaseInfo{shown[name], info} {
			if !info.Held || info.Kind != kind || (info.Limit == 2) != (name == "limited") || info.Remaining < 30*time.Second ||
				(kind == inspect.HoldExclusive) != (info.Label == "who") || kind == inspect.HoldLimited && info.Fence > 0 {
				t.Errorf("%s%s: %+v", prefix, name, info)
			}
		}
	}
	for _, one := range claims {
		if err := s.Release(ctx, one); err != nil {
			t.Errorf("%s%s: %v", prefix, one.Name, err)
		}
	}
	end()
	for _, one := range claims {
		if info := known(t, s, one.Name); info.Held {
			t.Errorf("%s: %+v", prefix, info)
		}
	}
}

// A third of the claims are at a master that stands still, and that no replica replaces. Each of them that is asked for by
// itself would cost the others time. Their leases are lost; no other one is, though many a command carries both.
func TestAStoppedMasterCostsOnlyTheLeasesThatAreOnIt(t *testing.T) {
	t.Parallel()
	const n, leases = 60, 2000
	c := servers.Cluster(t, "--cluster-node-timeout", "120000") // nobody notices
	rdb := dialCluster(t, c, true)
	stores := map[string]driver.Driver{
		"master:":   redislock.New(dialCluster(t, c, true), redislock.WithPrefix("master:")),
		"replicas:": redislock.New(dialCluster(t, c, true), redislock.WithPrefix("replicas:"), redislock.WithReplicas(1, time.Second)),
	}
	claims := make([]driver.Claim, n)
	for i := range claims {
		claims[i] = claim(fmt.Sprint("name-", i), "holder", []func(*driver.Claim){alone, reader, permit}[i%3])
		for _, s := range stores {
			grant(t, s, claims[i])
		}
	}
	j := &journal{}
	locks, err := core.New(redislock.New(rdb), core.WithTTL(10*time.Second), core.WithLogger(slog.New(slog.NewTextHandler(j, nil))))
	ok(t, err)
	held := make([]*core.Lease, leases)
	crowd(64, func(from int) {
		for i := from; i < leases; i += 64 {
			x, err := locks.TryAcquire(t.Context(), fmt.Sprint("name-", i))
			check(t, err)
			held[i] = x
		}
	})
	if t.Failed() {
		return
	}
	stopped := c.Owner(keySlot(t, c, "holdfast:name-0"))
	isSilent := func(key string) bool {
		master, err := rdb.MasterForKey(t.Context(), key)
		ok(t, err)
		return master.Options().Addr == stopped.Addr()
	}
	byName := func(x *core.Lease) bool { return isSilent("holdfast:" + x.Name()) }
	good := slices.DeleteFunc(slices.Clone(held), byName)
	lost := slices.DeleteFunc(slices.Clone(held), func(x *core.Lease) bool { return !byName(x) })
	stopped.Pause()
	defer stopped.Resume()
	for prefix, s := range stores {
		ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
		defer cancel()
		for i, err := range s.Renew(ctx, claims) {
			if silent := isSilent(prefix + claims[i].Name); (err == nil) == silent {
				t.Errorf("%s: %+v: its master is silent: %v, and it says %v", prefix, claims[i], silent, err)
			}
		}
	}
	for _, x := range lost {
		<-x.Context().Done()
	}
	for _, x := range good {
		ok(t, x.Err())
	}
	if len(lost) < leases/4 || len(good) < leases/2 {
		t.Errorf("%d leases are on the master that stands still, and %d on others", len(lost), len(good))
	}
	if got := j.unavailable(); len(got) != 1 || got[0] != "it did not answer in time" {
		t.Errorf("logged %q", got)
	}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	_ = locks.Close(ctx) // leaves the leases to their TTL
}

// slotted is a server that has all slots of a cluster, and refuses a command whose keys are in two. So
// do serverless and clustered services that are one endpoint for plain clients.
func slotted(t *testing.T) *servers.Server {
	t.Helper()
	p, s := own(t, "--cluster-enabled", "yes")
	all := []any{"cluster", "addslots"}
	for slot := range 16384 {
		all = append(all, slot)
	}
	p.do(t, all...)
	eventually(t, "the cluster serves", func() bool { return strings.Contains(p.direct.ClusterInfo(t.Context()).Val(), "cluster_state:ok") })
	return s
}

// Many callers, whose commands travel together, and a crowd of renewals. A Store that has not acquired anything learns
// from its renewals.
func TestAPlainClientFindsOutThatSlotsAreChecked(t *testing.T) {
	t.Parallel()
	server := slotted(t)
	var writes atomic.Int64
	rdb := dial(t, &redis.Options{Addr: server.Addr(), Dialer: editing(func(b []byte) ([]byte, error) {
		time.Sleep(time.Millisecond) // others gather
		writes.Add(1)
		return b, nil
	})})
	const n = 300
	for _, knows := range []bool{false, true} {
		s := store(t, rdb)
		if knows {
			redislock.BySlots(s)
		}
		claims := make([]driver.Claim, n)
		for i := range claims {
			claims[i] = claim(fmt.Sprint(knows, i), "mine")
			if !knows {
				claims[i] = with(claims[i], []func(*driver.Claim){alone, reader, permit}[i%3])
			}
		}
		few := func(did string, do func()) {
			t.Helper()
			before := writes.Load()
			do()
			if sent := writes.Load() - before; sent > n/4 && knows {
				t.Errorf("%s: %d round trips for %d commands", did, sent, n)
			}
		}
		few("acquire", func() { crowd(n, func(i int) { check(t, acquireWith(t.Context(), s, claims[i])) }) })
		few("renew", func() { ok(t, errors.Join(s.Renew(t.Context(), claims)...)) })
		errs := store(t, rdb).Renew(t.Context(), append(slices.Clone(claims), claim("nobody's", "mine")))
		ok(t, errors.Join(errs[:n]...))
		is(t, errs[n], driver.ErrNotOwner)
		few("release", func() { crowd(n, func(i int) { check(t, s.Release(t.Context(), claims[i])) }) })
	}
}

// Plain clients, who know that slots are checked and who do not, and Cluster clients use one deployment, and the same counter
// for a name: also in the slot of the one counter with which plain clients begin. With empty braces, that is the slot of its key.
func TestFencesGrowAcrossAllKindsOfClients(t *testing.T) {
	t.Parallel()
	server := slotted(t)
	plain := dial(t, &redis.Options{Addr: server.Addr()})
	cluster := warmCluster(t, &redis.ClusterOptions{Addrs: []string{server.Addr()}, ContextTimeoutEnabled: true})
	slotOf := func(key string) int64 { return plain.ClusterKeySlot(t.Context(), key).Val() }
	ahead := uint64(time.Now().Add(time.Hour).UnixMicro())
	for prefix, tagged := range map[string]string{"holdfast:": "holdfast:", "": "{}:v1:fence"} {
		home := ""
		for i := 0; home == ""; i++ {
			if name := fmt.Sprint(i); slotOf(prefix+name) == slotOf(tagged) {
				home = name
			}
		}
		with := redislock.WithPrefix(prefix)
		grant(t, redislock.New(cluster, with), claim("a", "first"))
		counters := append(plain.Keys(t.Context(), "{"+prefix+"?*}:v1:fence").Val(), "{"+prefix+"}:v1:fence")
		for _, counter := range counters {
			ok(t, plain.Set(t.Context(), counter, ahead, 0).Err())
		}
		ok(t, plain.Del(t.Context(), prefix+"a").Err())
		for what, s := range map[string]driver.Driver{
			"plain": redislock.New(plain, with), "plain, and knows": redislock.BySlots(redislock.New(plain, with)), "cluster": redislock.New(cluster, with),
		} {
			for _, name := range []string{home, "a"} {
				c := claim(name, "x")
				if g := grant(t, s, c); g.Fence <= ahead {
					t.Errorf("%s: %s%s: fence %d after %d", what, prefix, name, g.Fence, ahead)
				}
				release(t, s, c)
			}
		}
	}
}
