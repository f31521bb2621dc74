package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
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
	stores := map[string]driver.Driver{
		"nil client":     redislock.New(nil),
		"nil client ":    redislock.New(none),
		"Ring":           redislock.New(ring),
		"ReadOnly":       redislock.New(cluster(redis.ClusterOptions{ReadOnly: true})),
		"RouteByLatency": redislock.New(cluster(redis.ClusterOptions{RouteByLatency: true})),
		"RouteRandomly":  redislock.New(cluster(redis.ClusterOptions{RouteRandomly: true})),
		"WithPrefix":     redislock.New(plain, redislock.WithPrefix("a{b")),
		"WithPrefix ":    redislock.New(plain, redislock.WithPrefix("a}b")),
		"WithPrefix  ":   redislock.New(plain, redislock.WithPrefix("a\nb")),

		"WithReplicas(-1, 1s)": redislock.New(plain, redislock.WithReplicas(-1, time.Second)),
		"WithReplicas(1, 0s)":  redislock.New(plain, redislock.WithReplicas(1, 0)),
		"WithReplicas(1, 1µs)": redislock.New(plain, redislock.WithReplicas(1, time.Microsecond)),
		"WithReplicas(1, -1s)": redislock.New(plain, redislock.WithReplicas(1, -time.Second)),
	}
	if cached := (&redis.Options{Addr: "127.0.0.1:1", Protocol: 3}); setNewer(cached, "ClientSideCacheConfig", 0) {
		stores["client-side caching"] = redislock.New(dial(t, cached))
	}
	backendtest.RefusedByNew(t, stores)
	byValue := struct{ redis.UniversalClient }{plain} // such as one that counts commands
	for _, rdb := range []redis.UniversalClient{plain, cluster(redis.ClusterOptions{}), byValue} {
		_, err := core.New(redislock.New(rdb, redislock.WithPrefix(""), redislock.WithReplicas(0, 0)))
		ok(t, err)
	}
	if at := redislock.New(plain).Capabilities().Location; at != "127.0.0.1:1" {
		t.Errorf("it is at %q", at)
	}
}

func TestTheLockIsAPlainKeyThatOtherLibrariesRespect(t *testing.T) {
	t.Parallel()
	p := part(t)
	locks := p.locker(t)
	x := acquire(t, locks, "order:42", core.WithLabel("web-1"), core.WithRenewEvery(ttl/10))
	value := p.value(t, "order:42")
	if len(value) != 22+1+5 || value[22:] != "\x1fweb-1" {
		t.Errorf("a value of %d bytes", len(value))
	}
	if d := p.direct.PTTL(t.Context(), p.key("order:42")).Val(); d <= 0 || d > ttl {
		t.Errorf("expires in %s", d)
	}
	if renewed(t, x); p.value(t, "order:42") != value {
		t.Error("a renewal has changed the value")
	}
	if p.direct.SetNX(t.Context(), p.key("order:42"), "theirs", time.Minute).Val() {
		t.Error("another library got it too")
	}
	ok(t, x.Release(t.Context()))
	if !p.direct.SetNX(t.Context(), p.key("order:42"), "theirs", time.Minute).Val() {
		t.Error("another library does not get it")
	}
	_, err := locks.TryAcquire(t.Context(), "order:42")
	is(t, err, core.ErrHeld)
}

func TestNothingIsLeftAfterTheLastWaiter(t *testing.T) {
	t.Parallel()
	p := part(t)
	lockers := []*core.Locker{p.locker(t), p.locker(t)}
	var served atomic.Int64
	crowd(100, func(i int) {
		for n := range 40 {
			err := lockers[n%2].Do(t.Context(), fmt.Sprintf("name-%d", i%20), func(context.Context) error { return nil }, core.WithWait(10*time.Millisecond))
			if err == nil {
				served.Add(1)
			} else if !errors.Is(err, core.ErrHeld) && !errors.Is(err, core.ErrUnavailable) { // by a busy machine
				t.Error(err)
			}
		}
	})
	if served.Load() < 20 {
		t.Errorf("%d of 4000 served", served.Load())
	}
	eventually(t, "no channel has a subscriber", func() bool {
		return len(p.direct.PubSubChannels(t.Context(), "*"+p.prefix+"*").Val()) == 0
	})
	for _, locks := range lockers {
		ok(t, locks.Close(t.Context()))
	}
	if keys := p.direct.Keys(t.Context(), "*"+p.prefix+"*").Val(); len(keys) != 1 || keys[0] != "{"+p.prefix+"}:v1:fence" {
		t.Errorf("keys %q", keys)
	}
}
