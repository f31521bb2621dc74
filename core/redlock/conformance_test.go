package redlock_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/olddriver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

func TestConformanceInMemory(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 4, 5} {
		drivertest.Run(t, drivertest.Harness{Virtual: true, Open: func(*testing.T) drivertest.Service {
			stores, down := memory(n), memory(n)
			for _, node := range down {
				node.(*memlock.Store).SetDown(true)
			}
			return drivertest.Service{
				Driver:      func() driver.Driver { return redlock.New(stores) },
				Unreachable: func() driver.Driver { return redlock.New(down) },
			}
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
	nodes := five(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t *testing.T) drivertest.Service { return over(t, addrs(nodes), t.Name()+":", redlock.WithFence()) },
		OpenServers: func(t *testing.T) (drivertest.Service, drivertest.Servers) {
			own := five(t)
			return over(t, addrs(own), "holdfast:", redlock.WithFence()), drivertest.Servers{
				Kill: func() {
					for _, s := range own {
						s.Kill()
					}
				},
				Restart: func() {
					for _, s := range own {
						s.Restart()
					}
				},
				Forgetful: true,
			}
		},
	})
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	nodes := five(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t *testing.T) drivertest.Service { return over(t, addrs(nodes), t.Name()+":") },
	}.Uneven(4))
}

func five(t *testing.T) []*servers.Server {
	t.Helper()
	nodes := make([]*servers.Server, 5)
	for i := range nodes {
		nodes[i] = servers.Redis(t)
	}
	return nodes
}

func addrs(nodes []*servers.Server) []string {
	all := make([]string, len(nodes))
	for i, s := range nodes {
		all[i] = s.Addr()
	}
	return all
}

// over is a service that needs a quorum of the servers.
func over(t *testing.T, addrs []string, prefix string, opts ...redlock.Option) drivertest.Service {
	t.Helper()
	direct := make([]*redis.Client, len(addrs))
	for i := range addrs {
		direct[i] = dial(t, addrs[i])
	}
	return drivertest.Service{
		Driver: func() driver.Driver { return quorum(t, addrs, prefix, opts...) },
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
		Through: func() (driver.Driver, []*faultproxy.Proxy) { // to a minority: more is more than is promised
			proxies, through := make([]*faultproxy.Proxy, 2), slices.Clone(addrs)
			for i := range proxies {
				proxies[i] = faultproxy.New(t, addrs[i])
				through[i] = proxies[i].Addr()
			}
			return quorum(t, through, prefix, opts...), proxies
		},
		Holder: strings.Join(addrs, ",") + " " + prefix,
	}
}

// quorum is a store that ends with the test.
func quorum(t *testing.T, addrs []string, prefix string, opts ...redlock.Option) driver.Driver {
	t.Helper()
	nodes := make([]driver.Driver, len(addrs))
	for i, addr := range addrs {
		nodes[i] = redislock.New(dial(t, addr), redislock.WithPrefix(prefix))
	}
	store := redlock.New(nodes, opts...)
	t.Cleanup(func() { ok(t, store.CloseIdle(context.WithoutCancel(t.Context()))) })
	return store
}

// TestHolder is the process that the conformance suite freezes.
func TestHolder(t *testing.T) {
	t.Parallel()
	drivertest.Hold(t, func(holder string) driver.Driver {
		addrs, prefix, _ := strings.Cut(holder, " ")
		return quorum(t, strings.Split(addrs, ","), prefix, redlock.WithFence())
	})
}
