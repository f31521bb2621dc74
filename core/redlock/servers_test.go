package redlock_test

import (
	"context"
	"errors"
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

	aMachineIsBusy = 2 * time.Minute
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
	return backendtest.Locker(f.t, quorum(f.t, backendtest.Addrs(f.proxies), "holdfast:"), realTTL)
}

// steady is a lease that is renewed often. Every server has it: a busy one may have been too late for the quorum.
func (f *farm) steady(locks *core.Locker) *core.Lease {
	f.t.Helper()
	x := backendtest.Acquire(f.t, locks, "steady", core.WithTTL(steadyTTL), core.WithRenewEvery(realTTL/10))
	f.at(1)
	return x
}

// at waits until the name is locked at every server, or at none.
func (f *farm) at(n int64) {
	f.t.Helper()
	for i, rdb := range f.direct {
		eventually(f.t, fmt.Sprintf("server %d has it: %d", i, n), func() bool { return rdb.Exists(f.t.Context(), "holdfast:steady").Val() == n })
	}
}

// load has three processes contend for a name until the test ends. No two may hold it at once. What it returns waits for a few
// turns more.
func (f *farm) load() (goesOn func()) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	var turns checker
	var wg sync.WaitGroup
	f.t.Cleanup(func() { cancel(); wg.Wait() })
	for who := range 3 {
		locks := f.locker()
		wg.Go(func() {
			for ctx.Err() == nil {
				x, err := locks.Acquire(ctx, "name")
				if err != nil {
					if errors.Is(err, core.ErrInvalid) {
						f.t.Error(err)
					}
					continue
				}
				turns.work(f.t, fmt.Sprint(who), x, 100*time.Millisecond) // most of the time, a busy machine has nothing to do for them
				_ = x.Release(context.WithoutCancel(ctx))                 // a loss is no fault here
			}
		})
	}
	return func() {
		f.t.Helper()
		before := turns.had()
		backendtest.Within(f.t, aMachineIsBusy, "others have their turns", func() bool { return turns.had() >= before+3 })
	}
}

func TestALeaseStandsWhateverBefallsOneServerAtATime(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	x := f.steady(f.locker())
	goesOn := f.load()
	for i, fault := range []struct{ begin, end func(node int) }{
		{func(n int) { f.servers[n].Kill(); time.Sleep(realTTL + realTTL/4) }, func(n int) { f.servers[n].RestartEmpty() }}, // by the restart rule
		{func(n int) { f.servers[n].Pause() }, func(n int) { f.servers[n].Resume() }},
		{func(n int) { f.proxies[n].BlackHole(true) }, func(n int) { f.proxies[n].Heal() }},
		{func(n int) { f.proxies[n].Refuse(true); f.proxies[n].Reset() }, func(n int) { f.proxies[n].Heal() }},
		{func(n int) { f.proxies[n].SetDelay(realTTL/3, realTTL/3) }, func(n int) { f.proxies[n].Heal() }},
	} {
		fault.begin(i)
		backendtest.Renewed(t, x)
		goesOn()
		fault.end(i)
		f.at(1) // healed
	}
	ok(t, x.Release(t.Context()))
}

func TestALeaseOutlivesTheMemoryOfEveryServer(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	x := f.steady(f.locker())
	for round := range 10 {
		if n := round % 5; round < 5 {
			ok(t, f.direct[n].FlushAll(t.Context()).Err())
		} else {
			f.servers[n].Kill()
			f.servers[n].RestartEmpty()
		}
		f.at(1)
		ok(t, x.Err())
	}
	ok(t, x.Release(t.Context()))
	f.at(0)
}

func TestTwoServersMayBeGoneAndThreeMayNot(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	locks := f.locker()
	x := f.steady(locks)
	goesOn := f.load()
	f.servers[0].Pause()
	f.servers[1].Kill()
	for range 3 {
		backendtest.Renewed(t, x)
		goesOn()
	}
	f.proxies[2].BlackHole(true)
	_, err := locks.TryAcquire(t.Context(), "another")
	is(t, err, core.ErrUnavailable)
	<-x.Context().Done()
	is(t, x.Err(), core.ErrLost)

	f.servers[0].Resume()
	f.servers[1].RestartEmpty()
	f.proxies[2].Heal()
	backendtest.Within(t, aMachineIsBusy, "the lock service is back", func() bool {
		x, err := locks.TryAcquire(t.Context(), "steady")
		return err == nil && x.Release(t.Context()) == nil
	})
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
