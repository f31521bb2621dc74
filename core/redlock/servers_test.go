package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
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
	f := &farm{t: t}
	for range 5 {
		s := servers.Redis(t)
		f.servers = append(f.servers, s)
		f.proxies = append(f.proxies, faultproxy.New(t, s.Addr()))
		f.direct = append(f.direct, dial(t, s.Addr()))
	}
	return f
}

// locker is one as one more process would have it.
func (f *farm) locker() *core.Locker {
	f.t.Helper()
	nodes := make([]driver.Driver, len(f.proxies))
	for i, p := range f.proxies {
		nodes[i] = redislock.New(dial(f.t, p.Addr()))
	}
	return locker(f.t, redlock.New(nodes), realTTL)
}

// everywhere waits until the name is locked at every server.
func (f *farm) everywhere(name string) {
	f.t.Helper()
	for i, rdb := range f.direct {
		eventually(f.t, fmt.Sprintf("server %d has %s", i, name), func() bool {
			return rdb.Exists(f.t.Context(), "holdfast:"+name).Val() == 1
		})
	}
}

// load has three processes contend for two names until it is told to stop, and says how many
// turns they had. No two may hold a name at once.
func (f *farm) load() (stop func() (runs int)) {
	f.t.Helper()
	ctx, cancel := context.WithCancel(f.t.Context())
	checkers := make([]checker, 2)
	var wg sync.WaitGroup
	for who := range 3 {
		locks := f.locker()
		for i := range checkers {
			wg.Go(func() {
				name := fmt.Sprint("name-", i)
				for ctx.Err() == nil {
					x, err := locks.Acquire(ctx, name)
					if err != nil {
						if errors.Is(err, core.ErrInvalid) {
							f.t.Error(err)
						}
						continue
					}
					checkers[i].work(f.t, fmt.Sprint(who), x, 20*time.Millisecond)
					_ = x.Release(context.WithoutCancel(ctx)) // a loss is no fault here
				}
			})
		}
	}
	return func() (runs int) {
		cancel()
		wg.Wait()
		for i := range checkers {
			runs += checkers[i].runs
		}
		return runs
	}
}

func TestALeaseStandsWhateverBefallsOneServerAtATime(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	steady, err := f.locker().Acquire(t.Context(), "steady", core.WithTTL(steadyTTL))
	ok(t, err)
	stop := f.load()
	const long = realTTL + realTTL/4
	for i, fault := range []func(node int){
		func(n int) { f.servers[n].Kill(); time.Sleep(long); f.servers[n].RestartEmpty() }, // by the restart rule
		func(n int) { f.servers[n].Pause(); time.Sleep(long); f.servers[n].Resume() },
		func(n int) { f.proxies[n].BlackHole(true); time.Sleep(long); f.proxies[n].Heal() },
		func(n int) { f.proxies[n].Refuse(true); f.proxies[n].Reset(); time.Sleep(long); f.proxies[n].Heal() },
		func(n int) { f.proxies[n].SetDelay(long/4, long/4); time.Sleep(long); f.proxies[n].Heal() },
	} {
		fault(i)
		ok(t, steady.Err())
		f.everywhere("steady") // healed
	}
	if runs := stop(); runs < 10 {
		t.Errorf("%d turns beside it", runs)
	}
	ok(t, steady.Release(t.Context()))
}

func TestALeaseOutlivesTheMemoryOfEveryServer(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	steady, err := f.locker().Acquire(t.Context(), "steady")
	ok(t, err)
	f.everywhere("steady")
	for round := range 10 {
		n := round % 5
		if round < 5 {
			ok(t, f.direct[n].FlushAll(t.Context()).Err())
		} else {
			f.servers[n].Kill()
			f.servers[n].RestartEmpty()
		}
		f.everywhere("steady")
		ok(t, steady.Err())
	}
	ok(t, steady.Release(t.Context()))
	for i, rdb := range f.direct {
		eventually(t, fmt.Sprintf("server %d is free of it", i), func() bool {
			return rdb.Exists(t.Context(), "holdfast:steady").Val() == 0
		})
	}
}

func TestTwoServersMayBeGoneAndThreeMayNot(t *testing.T) {
	t.Parallel()
	f := newFarm(t)
	locks := f.locker()
	steady, err := locks.Acquire(t.Context(), "steady", core.WithTTL(steadyTTL))
	ok(t, err)
	stop := f.load()
	f.servers[0].Pause()
	f.servers[1].Kill()
	time.Sleep(steadyTTL + realTTL)
	ok(t, steady.Err())
	if runs := stop(); runs < 3 {
		t.Errorf("%d turns without two servers", runs)
	}

	f.proxies[2].BlackHole(true)
	_, err = locks.TryAcquire(t.Context(), "another")
	is(t, err, core.ErrUnavailable)
	<-steady.Context().Done()
	is(t, steady.Err(), core.ErrLost)

	f.servers[0].Resume()
	f.servers[1].RestartEmpty()
	f.proxies[2].Heal()
	eventually(t, "the lock service is back", func() bool {
		x, err := locks.TryAcquire(t.Context(), "steady")
		return err == nil && x.Release(t.Context()) == nil
	})
}
