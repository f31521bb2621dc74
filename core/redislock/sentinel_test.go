package redislock_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
)

func dialSentinel(t testing.TB, s *servers.RedisSentinel, password string) *redis.Client {
	t.Helper()
	rdb := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: servers.MasterName, SentinelAddrs: s.Addrs(), SentinelPassword: password, Password: password,
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func TestConformanceBySentinel(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	s := servers.Sentinel(t, "secret")
	each(t, func(t testing.TB, prefix string) drivertest.Config {
		service := bySentinel(t, s, prefix)
		service.Own = func() drivertest.Config {
			s := servers.Sentinel(t, "secret")
			service := bySentinel(t, s, "holdfast:")
			service.Kill = func() {
				inStep(t, dial(t, &redis.Options{Addr: s.Nodes[0].Addr(), Password: "secret"}), "in-step")
				s.Nodes[0].Kill()
			}
			service.Restart = func() {
				s.AwaitMaster(s.Nodes[1])
				s.Nodes[0].Restart()
			}
			return service
		}
		return service
	})
}

func TestConformanceBySentinelOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	s := servers.Sentinel(t, "secret")
	each(t, func(t testing.TB, prefix string) drivertest.Config {
		return behindSentinel(t, s, prefix).Uneven(bySentinel(t, s, prefix))
	})
}

// bySentinel is a service whose master the Sentinels name.
func bySentinel(t testing.TB, s *servers.RedisSentinel, prefix string) drivertest.Config {
	t.Helper()
	service := service(t, &redis.Options{Addr: s.Nodes[0].Addr(), Password: "secret"}, prefix)
	service.Driver = func() driver.Driver {
		return redislock.New(dialSentinel(t, s, "secret"), redislock.WithPrefix(prefix))
	}
	service.Through = behindSentinel(t, s, prefix).Through
	return service
}

// behindSentinel makes processes that reach each node through a proxy.
func behindSentinel(t testing.TB, s *servers.RedisSentinel, prefix string) backendtest.Process {
	return func() (driver.Driver, []*faultproxy.Proxy) {
		through, proxies := proxied(t, append(slices.Clone(s.Nodes), s.Sentinels...))
		rdb := redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: servers.MasterName, SentinelAddrs: s.Addrs(), SentinelPassword: "secret", Password: "secret", Dialer: through,
		})
		t.Cleanup(func() { _ = rdb.Close() })
		return redislock.New(rdb, redislock.WithPrefix(prefix)), proxies[:len(s.Nodes)]
	}
}

func TestAFailoverBySentinelIsSurvived(t *testing.T) {
	t.Parallel()
	s := servers.Sentinel(t, "secret")
	rdb := dialSentinel(t, s, "secret")
	locks, other := clusterLocker(t, rdb), clusterLocker(t, dialSentinel(t, s, "secret"))
	var held []*core.Lease
	for i := range 20 {
		held = append(held, acquire(t, locks, fmt.Sprintf("held-%d", i)))
	}
	got := make(chan *core.Lease, 1)
	go func() { // waits over the failover
		y, err := other.Acquire(t.Context(), "held-0")
		if err != nil {
			t.Error(err)
		}
		got <- y
	}()
	ok(t, rdb.Wait(t.Context(), 1, 0).Err()) // the replica has heard of all
	s.Nodes[0].Kill()
	s.AwaitMaster(s.Nodes[1])
	for _, locks := range []*core.Locker{locks, other} {
		eventually(t, "the new master is found", func() bool {
			_, err := locks.TryAcquire(t.Context(), "held-1")
			return errors.Is(err, core.ErrHeld)
		})
	}
	last := held[len(held)-1].Fence()
	renewedAndReleased(t, held)
	y := <-got
	if y == nil {
		return
	}
	if y.Fence() <= last {
		t.Errorf("fence %d after %d", y.Fence(), last)
	}
	ok(t, y.Release(t.Context()))
	// What a replica has not heard of before it is promoted is lost, and its holder is told.
	x := acquire(t, locks, "forgotten")
	ok(t, dial(t, &redis.Options{Addr: s.Nodes[1].Addr(), Password: "secret"}).Del(t.Context(), "holdfast:forgotten").Err())
	<-x.Context().Done()
	is(t, x.Err(), core.ErrLost)
	z := acquire(t, other, "forgotten")
	if z.Fence() <= x.Fence() {
		t.Errorf("fence %d after %d", z.Fence(), x.Fence())
	}
	ok(t, z.Release(t.Context()))
}

func TestWithoutItsPasswordNoSentinelAnswersAndTheLockServiceIsUnavailable(t *testing.T) {
	t.Parallel()
	s := servers.Sentinel(t, "secret")
	locks := locker(t, dialSentinel(t, s, "wrong"))
	_, err := locks.TryAcquire(t.Context(), "name")
	is(t, err, core.ErrUnavailable)
}
