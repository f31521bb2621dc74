package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// slotted is a server that has all slots of a cluster, and refuses a command whose keys are in two. So
// do serverless and clustered services that are one endpoint for plain clients.
func slotted(t *testing.T) *servers.Server {
	t.Helper()
	s := servers.Redis(t, "--cluster-enabled", "yes")
	rdb := dial(t, &redis.Options{Addr: s.Addr()})
	var all []any
	for slot := range 16384 {
		all = append(all, slot)
	}
	ok(t, rdb.Do(t.Context(), append([]any{"cluster", "addslots"}, all...)...).Err())
	eventually(t, "the cluster serves", func() bool {
		return strings.Contains(rdb.ClusterInfo(t.Context()).Val(), "cluster_state:ok")
	})
	return s
}

func TestConformanceOfAPlainClientWhereSlotsAreChecked(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server := slotted(t)
	each(t, func(t testing.TB, prefix string) drivertest.Config {
		s := onRedis(t, server.Addr(), prefix)
		s.Messages = nil // the channels are sharded
		return s
	})
}

// Many callers, whose commands travel together, and a crowd of renewals.
func TestAPlainClientFindsOutThatSlotsAreChecked(t *testing.T) {
	t.Parallel()
	rdb := dial(t, &redis.Options{Addr: slotted(t).Addr()})
	s := redislock.New(rdb)
	const n = 200
	claims := make([]driver.Claim, n)
	crowd(n, func(i int) {
		claims[i] = claimOf(i)
		switch i % 4 {
		case 1:
			claims[i].Limit = driver.Readers
		case 2:
			claims[i].Limit = 2
		}
		_, err := s.Acquire(t.Context(), claims[i])
		ok(t, err)
	})
	for i, err := range s.Renew(t.Context(), claims) {
		if err != nil {
			t.Errorf("renewal of %d: %v", i, err)
		}
	}
	crowd(n, func(i int) { ok(t, s.Release(t.Context(), claims[i])) })
}

// A Store that has not acquired anything learns from its renewals.
func TestAPlainClientThatOnlyRenewsFindsOutThatSlotsAreChecked(t *testing.T) {
	t.Parallel()
	rdb := dial(t, &redis.Options{Addr: slotted(t).Addr()})
	s, other := redislock.New(rdb), redislock.New(rdb)
	claims := []driver.Claim{claimOf(1), claimOf(2), claimOf(3)}
	for _, c := range claims[:2] {
		_, err := s.Acquire(t.Context(), c)
		ok(t, err)
	}
	errs := other.Renew(t.Context(), claims)
	if errs[0] != nil || errs[1] != nil || !errors.Is(errs[2], driver.ErrNotOwner) {
		t.Errorf("%v", errs)
	}
}

// counting counts how often commands are sent. Each time takes a while, so that others gather.
type counting struct {
	net.Conn
	writes *atomic.Int64
}

func (c counting) Write(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	c.writes.Add(1)
	return c.Conn.Write(p)
}

func TestCommandsShareRoundTripsWhereSlotsAreChecked(t *testing.T) {
	t.Parallel()
	server := slotted(t)
	var writes atomic.Int64
	rdb := dial(t, &redis.Options{Addr: server.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return counting{conn, &writes}, err
	}})
	s := redislock.New(rdb, redislock.WithSlots())
	const n = 300
	claims := make([]driver.Claim, n)
	few := func(what string, do func()) {
		t.Helper()
		before := writes.Load()
		do()
		if sent := writes.Load() - before; sent > n/4 {
			t.Errorf("%s: %d round trips for %d commands", what, sent, n)
		}
	}
	few("acquire", func() {
		crowd(n, func(i int) {
			claims[i] = claimOf(i)
			_, err := s.Acquire(t.Context(), claims[i])
			ok(t, err)
		})
	})
	few("renew", func() { ok(t, errors.Join(s.Renew(t.Context(), claims)...)) })
	few("release", func() { crowd(n, func(i int) { ok(t, s.Release(t.Context(), claims[i])) }) })
}

// Plain clients, with the option and without, and Cluster clients use one deployment.
func TestFencesGrowAcrossAllKindsOfClients(t *testing.T) {
	t.Parallel()
	server := slotted(t)
	plain := dial(t, &redis.Options{Addr: server.Addr()})
	cluster := warmCluster(t, &redis.ClusterOptions{Addrs: []string{server.Addr()}, ContextTimeoutEnabled: true})
	names := []string{"a", "b", "c"}
	for i := 0; ; i++ { // one in the slot of the counter that plain clients begin with
		if name := fmt.Sprint(i); plain.ClusterKeySlot(t.Context(), "holdfast:"+name).Val() == plain.ClusterKeySlot(t.Context(), "holdfast:").Val() {
			names = append(names, name)
			break
		}
	}
	last := make(map[string]uint64)
	for range 3 {
		for what, store := range map[string]*redislock.Store{
			"plain": redislock.New(plain), "with the option": redislock.New(plain, redislock.WithSlots()), "cluster": redislock.New(cluster),
		} {
			for _, name := range names {
				c := driver.Claim{Name: name, Token: strings.Repeat("x", 22), TTL: time.Minute, Fences: 256} // far ahead of the clock
				for range 20 {
					g, err := store.Acquire(t.Context(), c)
					ok(t, err)
					if g.Fence <= last[name] {
						t.Errorf("%s: %s: fence %d after %d", what, name, g.Fence, last[name])
					}
					last[name] = g.Fence + uint64(g.Fences) - 1
					ok(t, store.Release(t.Context(), c))
				}
			}
		}
	}
}

func TestLeasesLastWhereSlotsAreChecked(t *testing.T) {
	t.Parallel()
	server := slotted(t)
	a := locker(t, dial(t, &redis.Options{Addr: server.Addr()}))
	b := locker(t, dial(t, &redis.Options{Addr: server.Addr()}))
	var held []*core.Lease
	for i := range 20 {
		held = append(held, acquire(t, a, fmt.Sprint("held-", i)))
	}
	got := make(chan error, 1)
	go func() {
		y, err := b.Acquire(t.Context(), "held-7")
		if err == nil {
			err = y.Release(t.Context())
		}
		got <- err
	}()
	lasts(t, held[0])
	for _, x := range held {
		ok(t, x.Release(t.Context()))
	}
	ok(t, <-got)
}
