package redislock_test

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// What the docs add to minimalACL, and a user of its own who only looks.
var (
	setUser    = []any{"acl", "setuser", "locks", "on", ">secret"}
	forClaims  = append(setUser[:5:5], minimalACL...)
	withWait   = []any{"acl", "setuser", "locks", "+wait"}
	withSlots  = []any{"acl", "setuser", "locks", "+spublish", "+ssubscribe", "+sunsubscribe", "+cluster|slots", "+command", "+asking"}
	withLooks  = []any{"acl", "setuser", "locks", "+scan"}
	withInfo   = []any{"acl", "setuser", "locks", "+info"}
	forLooking = []any{
		"acl", "setuser", "looker", "on", ">secret", "resetkeys", "~holdfast:*", "~{holdfast:*", "resetchannels",
		"-@all", "+evalsha", "+eval", "+get", "+pttl", "+time", "+zrange", "+hget", "+scan", "+hello", "+ping",
	}
)

// allow has an administrator give permissions, all in one command: other cases use the account meanwhile.
func allow(t testing.TB, addr string, lines ...[]any) {
	t.Helper()
	all := lines[0]
	for _, line := range lines[1:] {
		all = slices.Concat(all, line[3:])
	}
	ok(t, dial(t, &redis.Options{Addr: addr}).Do(t.Context(), all...).Err())
}

// asLocks is a service that is used with the permissions of the docs.
func asLocks(t testing.TB, addr, prefix string, opts ...redislock.Option) drivertest.Config {
	t.Helper()
	o := &redis.Options{Addr: addr, Username: "locks", Password: "secret"}
	opts = append(opts, redislock.WithPrefix(prefix))
	s := service(t, &redis.Options{Addr: addr}, prefix)
	s.Driver = func() driver.Driver { return redislock.New(dial(t, o), opts...) }
	s.Through = backendtest.Process(func() (driver.Driver, []*faultproxy.Proxy) {
		p := faultproxy.New(t, addr)
		behind := *o
		behind.Addr = p.Addr()
		return redislock.New(dial(t, &behind), opts...), []*faultproxy.Proxy{p}
	}).Through
	return s
}

// The list in the docs is neither too short nor too long.
func TestTheLeastPermissionsAreThoseThatScriptsNeed(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("scripts/*.lua")
	ok(t, err)
	granted := map[string]bool{"spublish": true} // withSlots
	for _, word := range minimalACL {
		if name, plus := strings.CutPrefix(word.(string), "+"); plus {
			granted[name] = true
		}
	}
	needed := map[string]bool{"evalsha": true, "eval": true, "subscribe": true, "unsubscribe": true, "hello": true, "ping": true}
	for _, file := range files {
		source, err := os.ReadFile(file)
		ok(t, err)
		for _, call := range regexp.MustCompile(`redis\.p?call\('(\w+)'`).FindAllStringSubmatch(string(source), -1) {
			needed[strings.ToLower(call[1])] = true
		}
	}
	if !maps.Equal(needed, granted) {
		t.Errorf("needed %v\ngranted %v", slices.Sorted(maps.Keys(needed)), slices.Sorted(maps.Keys(granted)))
	}
}

// The suites on one server and in a Cluster run with these permissions, too.
func TestConformanceWithTheLeastPermissionsAndReplicas(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server := servers.Redis(t, "--repl-diskless-sync-delay", "0")
	follow(t, server)
	allow(t, server.Addr(), forClaims, withLooks, withWait)
	each(t, func(t testing.TB, prefix string) drivertest.Config {
		return asLocks(t, server.Addr(), prefix, redislock.WithReplicas(1, time.Second))
	})
}

func clusterAsLocks(t testing.TB, c *servers.RedisCluster) *redis.ClusterClient {
	t.Helper()
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), Username: "locks", Password: "secret", ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = rdb.Close() })
	eventually(t, "the nodes are known", func() bool {
		return rdb.ForEachMaster(t.Context(), func(ctx context.Context, n *redis.Client) error { return n.Ping(ctx).Err() }) == nil
	})
	return rdb
}

func TestTheLeastPermissionsAreEnoughWhileASlotMoves(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t)
	for _, n := range c.Nodes {
		allow(t, n.Addr(), forClaims, withLooks, withSlots)
	}
	store := redislock.New(clusterAsLocks(t, c))
	claim := driver.Claim{Name: "name", Token: strings.Repeat("x", 22), TTL: time.Minute}
	_, err := store.Acquire(t.Context(), claim)
	ok(t, err)
	at := keySlot(t, c, "holdfast:name")
	from, to := c.Owner(at), c.Nodes[0]
	if from == to {
		to = c.Nodes[1]
	}
	c.BeginMove(at, from, to)
	if n := c.MoveKeys(at, 10, from, to); n != 2 { // the lock and the fence counter
		t.Fatalf("%d keys moved", n)
	}
	ok(t, store.Renew(t.Context(), []driver.Claim{claim})[0])
	ok(t, store.Release(t.Context(), claim))
}

func TestWhoOnlyLooksSeesEverythingAndChangesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	allow(t, w.server.Addr(), forLooking)
	looker := operates(t, dial(t, &redis.Options{Addr: w.server.Addr(), Username: "looker", Password: "secret"}))
	x := acquire(t, w.other, "held", core.WithLabel("web-1"))
	reader := acquire(t, w.other, "read", core.WithShared())
	ok(t, acquire(t, w.other, "done", core.WithDedup(time.Hour)).Complete(t.Context()))
	go func() { _, _ = w.locks.Acquire(t.Context(), "held") }()
	eventually(t, "the queue is seen", func() bool {
		info, err := looker.Inspect(t.Context(), "held")
		ok(t, err)
		return info.Label == "web-1" && len(info.Line) == 1
	})
	held := make(map[string]bool)
	for info, err := range looker.Leases(t.Context(), "") {
		ok(t, err)
		held[info.Name] = true
	}
	if len(held) != 2 || !held["held"] || !held["read"] {
		t.Errorf("leases %v", held)
	}
	markers := 0
	for _, err := range looker.Markers(t.Context(), "") {
		ok(t, err)
		markers++
	}
	if markers != 1 {
		t.Errorf("%d markers", markers)
	}
	info, err := looker.Inspect(t.Context(), "held")
	ok(t, err)
	_, errTaken := looker.TryAcquire(t.Context(), "free")
	for what, err := range map[string]error{
		"acquire": errTaken, "evict": looker.Evict(t.Context(), "held", info.Handle), "remove a marker": looker.Unmark(t.Context(), "done", ""),
	} {
		refused(t, err)
		if why := driver.Reason(err); !strings.Contains(why, "NOPERM") || !strings.Contains(why, "ACL SETUSER <user> +") {
			t.Errorf("%s: %v: %q", what, err, why)
		}
	}
	ok(t, x.Err())
	ok(t, reader.Err())
}

func TestTheServerIsCheckedByWhoMaySendInfo(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(t, "config", "set", "maxmemory", "100mb")
	w.do(t, "config", "set", "maxmemory-policy", "volatile-lru")
	allow(t, w.server.Addr(), forClaims)
	asLocks := func() *core.Locker {
		return locker(t, dial(t, &redis.Options{Addr: w.server.Addr(), Username: "locks", Password: "secret"}))
	}
	ok(t, asLocks().Ready(t.Context()))
	allow(t, w.server.Addr(), withInfo)
	is(t, asLocks().Ready(t.Context()), core.ErrUnavailable)
}
