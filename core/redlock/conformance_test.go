package redlock_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

func TestConformanceInMemory(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 4, 5} {
		drivertest.RunInBubble(t, func(testing.TB) drivertest.Config { return ofMemory(n) })
	}
}

func TestConformanceOfFencesInMemory(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5} {
		drivertest.RunInBubble(t, func(testing.TB) drivertest.Config { return ofMemory(n, redlock.WithFence()) })
	}
}

// plain is a node without a queue whose order can be set.
type plain struct {
	driver.Driver
	inspect.Inspector
}

// Nodes that have no queue whose order can be set are polled.
func TestConformanceOfNodesWithoutAQueueInMemory(t *testing.T) {
	t.Parallel()
	drivertest.RunInBubble(t, func(testing.TB) drivertest.Config {
		stores, down := memory(3), memory(3)
		for i := range stores {
			down[i].(*memlock.Store).SetDown(true)
			stores[i], down[i] = plain{stores[i], stores[i].(inspect.Inspector)}, plain{down[i], nil}
		}
		return drivertest.Config{
			Driver:      func() driver.Driver { return redlock.New(stores) },
			Unreachable: func() driver.Driver { return redlock.New(down) },
		}
	})
}

// Requests, answers and messages of every node are late, each for itself, so that they overtake each other. An entry whose
// attempt comes before a quorum has heard of the release leaves the queue, as doc.go says: without the part "queue".
func TestConformanceOverJitterInMemory(t *testing.T) {
	t.Parallel()
	drivertest.RunInBubble(t, func(testing.TB) drivertest.Config {
		c, nodes := ofMemory(5), memory(5)
		c.Slow = 300 * time.Millisecond // three commands, each of which may be late there and back
		c.Driver = func() driver.Driver {
			late := make([]driver.Driver, len(nodes))
			for i, node := range nodes {
				late[i] = jittery{node.(*memlock.Store), 4 * time.Millisecond}
			}
			return redlock.New(late)
		}
		return c
	}, "renew", "wait", "direct")
}

// ofMemory is a service of n nodes with queues.
func ofMemory(n int, opts ...redlock.Option) drivertest.Config {
	stores, down := memory(n), memory(n)
	for _, node := range down {
		node.(*memlock.Store).SetDown(true)
	}
	return drivertest.Config{
		Driver:      func() driver.Driver { return redlock.New(stores, opts...) },
		Unreachable: func() driver.Driver { return redlock.New(down, opts...) },
		Slow:        time.Millisecond, // it asks for a rank before it stands in the queue
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
	var cases atomic.Int64
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		c := over(t, backendtest.Addrs(nodes), fmt.Sprintf("holdfast:%d:", cases.Add(1)), redlock.WithFence())
		c.Own = func() drivertest.Config {
			own := five(t)
			c := over(t, backendtest.Addrs(own), "holdfast:", redlock.WithFence())
			c.Kill = func() {
				for _, s := range own {
					s.Kill()
				}
			}
			c.Restart = func() {
				for _, s := range own {
					s.Restart()
				}
			}
			c.Forgetful = true
			return c
		}
		return c
	})
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	nodes := five(t)
	var cases atomic.Int64
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		addrs, prefix := backendtest.Addrs(nodes), fmt.Sprintf("holdfast:%d:", cases.Add(1))
		return behind(t, addrs, prefix).Uneven(over(t, addrs, prefix))
	})
}

func five(t testing.TB) []*servers.Server {
	t.Helper()
	nodes := make([]*servers.Server, 5)
	for i := range nodes {
		nodes[i] = servers.Redis(t)
	}
	return nodes
}

// over is a service that needs a quorum of the servers.
func over(t testing.TB, addrs []string, prefix string, opts ...redlock.Option) drivertest.Config {
	t.Helper()
	direct := make([]*redis.Client, len(addrs))
	for i := range addrs {
		direct[i] = dial(t, addrs[i])
	}
	return drivertest.Config{
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
		Through: behind(t, addrs, prefix, opts...).Through,
		Slow:    100 * time.Millisecond,
	}
}

// behind makes processes that reach the servers through proxies.
func behind(t testing.TB, addrs []string, prefix string, opts ...redlock.Option) backendtest.Process {
	return func() (driver.Driver, []*faultproxy.Proxy) {
		proxies := make([]*faultproxy.Proxy, len(addrs))
		for i, addr := range addrs {
			proxies[i] = faultproxy.New(t, addr)
		}
		return quorum(t, backendtest.Addrs(proxies), prefix, opts...), proxies
	}
}

// quorum is a store that ends with the test.
func quorum(t testing.TB, addrs []string, prefix string, opts ...redlock.Option) driver.Driver {
	t.Helper()
	nodes := make([]driver.Driver, len(addrs))
	for i, addr := range addrs {
		nodes[i] = redislock.New(dial(t, addr), redislock.WithPrefix(prefix))
	}
	store := redlock.New(nodes, opts...)
	t.Cleanup(func() { ok(t, store.Close(context.WithoutCancel(t.Context()))) })
	return store
}
