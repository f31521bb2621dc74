package redlock_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

func TestConformanceInMemory(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 4, 5} {
		drivertest.Run(t, drivertest.Harness{Virtual: true, Open: func(*testing.T) drivertest.Service {
			stores := memory(n)
			return drivertest.Service{Driver: func() driver.Driver { return redlock.New(stores) }}
		}})
	}
}

func memory(n int) []driver.Driver {
	nodes := make([]driver.Driver, n)
	for i := range nodes {
		nodes[i] = memlock.New()
	}
	return nodes
}

func TestConformanceOnFiveRedisServers(t *testing.T) {
	t.Parallel()
	addrs := make([]string, 5)
	for i := range addrs {
		addrs[i] = servers.Redis(t).Addr()
	}
	drivertest.Run(t, drivertest.Harness{Open: func(t *testing.T) drivertest.Service {
		prefix := t.Name() + ":"
		direct := make([]*redis.Client, len(addrs))
		for i := range addrs {
			direct[i] = dial(t, addrs[i])
		}
		return drivertest.Service{
			Driver: func() driver.Driver {
				nodes := make([]driver.Driver, len(addrs))
				for i, addr := range addrs {
					nodes[i] = redislock.New(dial(t, addr), redislock.WithPrefix(prefix))
				}
				store := redlock.New(nodes)
				t.Cleanup(func() { ok(t, store.CloseIdle()) })
				return store
			},
			Overwrite: func(name string) {
				for _, rdb := range direct {
					ok(t, rdb.Set(t.Context(), prefix+name, "not holdfast's", 0).Err())
				}
			},
			Delete: func(name string) {
				for _, rdb := range direct {
					ok(t, rdb.Del(t.Context(), prefix+name).Err())
				}
			},
		}
	}})
}
