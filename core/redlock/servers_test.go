package redlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// realTTL is short enough to wait for, steadyTTL long enough for a machine that is busy.
const (
	realTTL   = 4 * time.Second
	steadyTTL = 10 * time.Second
)

// farm is five redis-servers, each behind a proxy.
type farm struct {
	t       *testing.T
	servers []*servers.Server
	proxies []*faultproxy.Proxy
	direct  []*redis.Client
}

func newFarm(t *testing.T) *farm {
	t.Helper()
	f := &farm{t: t, servers: five(t)}
	for _, s := range f.servers {
		f.proxies = append(f.proxies, faultproxy.New(t, s.Addr()))
		f.direct = append(f.direct, dial(t, s.Addr()))
	}
	return f
}

// locker is one as one more process would have it.
func (f *farm) locker() *core.Locker {
	f.t.Helper()
	return backendtest.Locker(f.t, quorum(f.t, backendtest.Addrs(f.proxies), "holdfast:", redlock.WithFence()), realTTL)
}

// steady is a lease that is renewed often. Every server has it: a busy one may have been too late for the quorum.
func (f *farm) steady(locks *core.Locker) *core.Lease {
	f.t.Helper()
	x := backendtest.Acquire(f.t, locks, "steady", core.WithTTL(steadyTTL), core.WithRenewEvery(realTTL/10))
	f.everywhere()
	return x
}

// everywhere waits until the name is locked at every server.
func (f *farm) everywhere() {
	f.t.Helper()
	for i, rdb := range f.direct {
		eventually(f.t, fmt.Sprintf("server %d has it", i), func() bool { return rdb.Exists(f.t.Context(), "holdfast:steady").Val() == 1 })
	}
}

func TestALeaseStandsWhateverBefallsOneServerAtATime(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	x := f.steady(f.locker())
	contention := backendtest.Contend(t, []string{"name"}, []*core.Locker{f.locker(), f.locker(), f.locker()})
	for i, fault := range []struct{ begin, end func(node int) }{
		{func(n int) { f.servers[n].Kill(); time.Sleep(realTTL + realTTL/4) }, func(n int) { f.servers[n].RestartEmpty() }}, // by the restart rule
		{func(n int) { f.servers[n].Pause() }, func(n int) { f.servers[n].Resume() }},
		{func(n int) { f.proxies[n].BlackHole(true) }, func(n int) { f.proxies[n].Heal() }},
		{func(n int) { f.proxies[n].Refuse(true); f.proxies[n].Reset() }, func(n int) { f.proxies[n].Heal() }},
		{func(n int) { f.proxies[n].SetDelay(realTTL/3, realTTL/3) }, func(n int) { f.proxies[n].Heal() }},
	} {
		fault.begin(i)
		backendtest.Renewed(t, x)
		contention.GoOn("beside one server that is not there")
		fault.end(i)
		f.everywhere() // healed
	}
	ok(t, x.Release(t.Context()))
}

// Its holder does not renew. So nothing but the rule keeps servers that have forgotten it from granting the name again.
func TestServersThatForgetGrantNothingUntilTheLongestTTLIsOver(t *testing.T) {
	t.Parallel()
	const longest = 2 * time.Second
	nodes := five(t)
	store := func() *redlock.Store {
		drivers := make([]driver.Driver, len(nodes))
		for i, s := range nodes {
			rdb := redis.NewClient(&redis.Options{
				Addr: s.Addr(), OnConnect: redislock.RestartRule(longest), MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
			})
			t.Cleanup(func() { _ = rdb.Close() })
			drivers[i] = redislock.New(rdb)
		}
		s := redlock.New(drivers, redlock.WithFence())
		t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
		return s
	}
	holder, other := store(), store()
	var granted time.Time
	acquire := func(what string, s *redlock.Store, token string) (g driver.Grant) {
		t.Helper()
		eventually(t, what, func() bool {
			began := time.Now()
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			var err error
			g, err = s.Acquire(ctx, driver.Claim{Name: "name", Token: token, TTL: longest})
			if err == nil && time.Since(granted) < longest {
				t.Fatal("two holders")
			}
			if err == nil {
				granted = began
			}
			return err == nil
		})
		return g
	}
	first := acquire("servers that are new are used", holder, "token-0000000000000001")
	var all sync.WaitGroup
	for _, s := range nodes {
		all.Go(func() { s.Kill(); s.RestartEmpty() })
	}
	all.Wait()
	if second := acquire("they are used again", other, "token-0000000000000002"); second.Fence <= first.Fence {
		t.Errorf("fence %d after %d", second.Fence, first.Fence)
	}
}
