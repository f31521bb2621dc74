package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

func TestWhatCannotWorkIsRefusedByNew(t *testing.T) {
	t.Parallel()
	plain := dial(t, &redis.Options{Addr: "127.0.0.1:1"})
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	cluster := func(o redis.ClusterOptions) redis.UniversalClient {
		o.Addrs = []string{"127.0.0.1:1"}
		c := redis.NewClusterClient(&o)
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
	var none *redis.Client
	stores := map[string]*redislock.Store{
		"nil client":     redislock.New(nil),
		"nil client ":    redislock.New(none),
		"Ring":           redislock.New(ring),
		"ReadOnly":       redislock.New(cluster(redis.ClusterOptions{ReadOnly: true})),
		"RouteByLatency": redislock.New(cluster(redis.ClusterOptions{RouteByLatency: true})),
		"RouteRandomly":  redislock.New(cluster(redis.ClusterOptions{RouteRandomly: true})),
		"WithPrefix":     redislock.New(plain, redislock.WithPrefix("a{b")),
		"WithPrefix ":    redislock.New(plain, redislock.WithPrefix("a}b")),
		"WithPrefix  ":   redislock.New(plain, redislock.WithPrefix("a\nb")),
	}
	if cached := (&redis.Options{Addr: "127.0.0.1:1", Protocol: 3}); redislock.SetNewerOption(cached, "ClientSideCacheConfig", 0) {
		stores["client-side caching"] = redislock.New(dial(t, cached))
	}
	for want, store := range stores {
		_, err := core.New(store)
		is(t, err, core.ErrInvalid)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	byValue := struct{ redis.UniversalClient }{plain} // such as one that counts commands
	for _, rdb := range []redis.UniversalClient{plain, cluster(redis.ClusterOptions{}), byValue} {
		if _, err := core.New(redislock.New(rdb, redislock.WithPrefix(""))); err != nil {
			t.Error(err)
		}
	}
}

func TestTheClientStaysAsItWas(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr, ReadTimeout: time.Second, WriteTimeout: 2 * time.Second})
	locks := locker(t, rdb, redislock.WithPrefix(share.Prefix))
	ok(t, acquire(t, locks, "name").Release(t.Context()))
	ok(t, locks.Close(t.Context()))
	if o := rdb.Options(); o.ContextTimeoutEnabled || o.ReadTimeout != time.Second || o.WriteTimeout != 2*time.Second {
		t.Errorf("%+v", o)
	}
	ok(t, rdb.Ping(t.Context()).Err())
}

func TestTheLockIsAPlainKeyThatOtherLibrariesRespect(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	locks := locker(t, rdb, redislock.WithPrefix(share.Prefix))
	x := acquire(t, locks, "order:42", core.WithLabel("web-1"))
	value := rdb.Get(t.Context(), share.Prefix+"order:42").Val()
	if len(value) != 22+1+5 || value[22:] != "\x1fweb-1" {
		t.Errorf("a value of %d bytes", len(value))
	}
	if d := rdb.PTTL(t.Context(), share.Prefix+"order:42").Val(); d <= 0 || d > ttl {
		t.Errorf("expires in %s", d)
	}
	if rdb.SetNX(t.Context(), share.Prefix+"order:42", "theirs", time.Minute).Val() {
		t.Error("another library got it too")
	}
	ok(t, x.Release(t.Context()))
	if !rdb.SetNX(t.Context(), share.Prefix+"order:42", "theirs", time.Minute).Val() {
		t.Error("another library does not get it")
	}
	_, err := locks.TryAcquire(t.Context(), "order:42")
	is(t, err, core.ErrHeld)
}

func TestNothingIsLeftAfterTheLastWaiter(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	locks := locker(t, rdb, redislock.WithPrefix(share.Prefix))
	other := locker(t, dial(t, &redis.Options{Addr: share.Addr}), redislock.WithPrefix(share.Prefix))
	var wg sync.WaitGroup
	var served atomic.Int64
	for i := range 100 {
		wg.Go(func() {
			name := fmt.Sprintf("name-%d", i%20)
			for range 20 {
				for _, l := range []*core.Locker{locks, other} {
					err := l.Do(t.Context(), name, func(context.Context) error { return nil }, core.WithWait(10*time.Millisecond))
					if err == nil {
						served.Add(1)
					} else if !errors.Is(err, core.ErrHeld) && !errors.Is(err, core.ErrUnavailable) { // by a busy machine
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	if served.Load() < 20 {
		t.Errorf("%d of 4000 served", served.Load())
	}
	eventually(t, "no channel has a subscriber", func() bool {
		return len(rdb.PubSubChannels(t.Context(), "*"+share.Prefix+"*").Val()) == 0
	})
	ok(t, locks.Close(t.Context()))
	ok(t, other.Close(t.Context()))
	keys := rdb.Keys(t.Context(), "*"+share.Prefix+"*").Val()
	if len(keys) != 1 || keys[0] != "{"+share.Prefix+"}:v1:fence" {
		t.Errorf("keys %q", keys)
	}
}

func TestNothingIsLeftOfThoseWhoShareAName(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	locks := locker(t, rdb, redislock.WithPrefix(share.Prefix))
	kinds := []core.Option{core.WithLimit(1), core.WithShared(), core.WithLimit(2)}
	var wg sync.WaitGroup
	for i := range 9 {
		wg.Go(func() {
			for range 10 {
				ok(t, locks.Do(t.Context(), "name", func(context.Context) error { return nil }, kinds[i%3]))
			}
		})
	}
	wg.Wait()
	ok(t, locks.Close(t.Context()))
	keys := rdb.Keys(t.Context(), "*"+share.Prefix+"*").Val()
	if len(keys) != 1 || keys[0] != "{"+share.Prefix+"}:v1:fence" {
		t.Errorf("keys %q", keys)
	}
}

// The permissions that docs and README give for a Redis user of its own.
var minimalACL = []any{
	"resetkeys", "~holdfast:*", "~{holdfast:*", "resetchannels", "&{holdfast:*",
	"-@all", "+evalsha", "+eval", "+get", "+mget", "+set", "+del", "+pexpire", "+pttl", "+time", "+exists", "+zadd", "+zrange", "+zrem", "+zscore", "+zcount", "+zrangebyscore", "+zremrangebyrank", "+hset", "+hget", "+hdel",
	"+publish", "+subscribe", "+unsubscribe", "+hello", "+ping",
}

func TestTheDocsGiveThePermissionsThatAreTested(t *testing.T) {
	t.Parallel()
	docs, err := os.ReadFile("../../docs/backends/redis.md")
	ok(t, err)
	for _, words := range [][]any{forClaims, noScripts, withWait, withSlots, withLooks, withInfo, forLooking} {
		line := strings.TrimSuffix(strings.ReplaceAll(fmt.Sprintln(words...), "acl setuser", "ACL SETUSER"), "\n")
		if !strings.Contains(string(docs), "\n"+line+"\n") {
			t.Errorf("docs/backends/redis.md does not say:\n%s", line)
		}
	}
}

func TestTheMinimalACLIsEnoughAndNoMore(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(t, append([]any{"acl", "setuser", "locks", "on", ">secret"}, minimalACL...)...)
	dialLocks := func() *redis.Client {
		return dial(t, &redis.Options{Addr: w.server.Addr(), Username: "locks", Password: "secret"})
	}
	rdb := dialLocks()
	a, b := locker(t, rdb), locker(t, dialLocks())
	x := acquire(t, a, "name", core.WithDedup(time.Hour))
	got := make(chan error, 1)
	go func() {
		y, err := b.Acquire(t.Context(), "name")
		if err == nil {
			err = y.Release(t.Context())
		}
		got <- err
	}()
	lasts(t, x)
	ok(t, x.Complete(t.Context()))
	ok(t, <-got)
	_, err := a.TryAcquire(t.Context(), "name", core.WithDedup(time.Hour))
	is(t, err, core.ErrDuplicate)
	kinds := []core.Option{core.WithShared(), core.WithLimit(2), core.WithMinHold(time.Millisecond)}
	leases := make([]*core.Lease, len(kinds))
	for i, kind := range kinds {
		leases[i] = acquire(t, a, fmt.Sprint("kind-", i), kind)
		go func() {
			y, err := b.Acquire(t.Context(), fmt.Sprint("kind-", i))
			if err == nil {
				err = y.Release(t.Context())
			}
			got <- err
		}()
	}
	lasts(t, leases[0])
	for _, x := range leases {
		ok(t, x.Release(t.Context()))
		ok(t, <-got)
	}
	many, err := a.AcquireAll(t.Context(), []string{"x", "y"}, core.WithLimit(3))
	ok(t, err)
	_, err = b.AcquireAll(t.Context(), []string{"w", "x"}, core.WithLimit(2), core.WithWait(0)) // looks at each
	ok(t, err)
	_, err = b.TryAcquire(t.Context(), "x", core.WithLimit(3))
	is(t, err, core.ErrHeld)
	ok(t, many.Release(t.Context()))
	for what, err := range map[string]error{
		"FLUSHALL":             rdb.FlushAll(t.Context()).Err(),
		"a foreign key":        rdb.Set(t.Context(), "other", "x", 0).Err(),
		"FLUSHALL by script":   rdb.Eval(t.Context(), "return redis.call('FLUSHALL')", nil).Err(),
		"foreign key, script":  rdb.Eval(t.Context(), "return redis.call('SET', 'other', 'x')", nil).Err(),
		"CONFIG":               rdb.ConfigGet(t.Context(), "*").Err(),
		"KEYS":                 rdb.Keys(t.Context(), "*").Err(),
		"another user's topic": rdb.Publish(t.Context(), "other", "x").Err(),
	} {
		if err == nil || !strings.Contains(err.Error(), "NOPERM") && !strings.Contains(err.Error(), "can't") && !strings.Contains(err.Error(), "ACL failure") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
