package redlock_test

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
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

// plain is a node without a queue whose order can be set: such nodes are polled.
type plain struct {
	driver.Driver
	inspect.Inspector
}

func TestConformanceInMemory(t *testing.T) {
	t.Parallel()
	fenced := []redlock.Option{redlock.WithFence()}
	for what, row := range map[string]struct {
		nodes int
		opts  []redlock.Option
		as    func(s *memlock.Store) driver.Driver // a process reaches a node
		slow  time.Duration
		parts []string // of the suite, if not all
	}{
		"three": {nodes: 3}, "four": {nodes: 4}, "five": {nodes: 5},
		"three with fences": {nodes: 3, opts: fenced}, "five with fences": {nodes: 5, opts: fenced},
		"without queues": {nodes: 3, as: func(s *memlock.Store) driver.Driver { return plain{s, s} }},
		// Requests, answers and messages of every node are late, each for itself: three commands, there and back. An entry whose
		// attempt comes before a quorum has heard of the release may be overtaken, as doc.go says.
		"over jitter": {
			nodes: 5, slow: 300 * time.Millisecond, parts: []string{"renew", "wait", "queue", "direct"},
			as: func(s *memlock.Store) driver.Driver {
				return struct {
					*node
					inspect.Inspector // the suite looks at the queues
				}{jittery(s), s}
			},
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			drivertest.RunInBubble(t, func(testing.TB) drivertest.Config {
				stores, down := memory(row.nodes), memory(row.nodes)
				for _, node := range down {
					node.(*memlock.Store).SetDown(true)
				}
				reach := func(nodes []driver.Driver) driver.Driver {
					nodes = slices.Clone(nodes)
					for i, node := range nodes {
						if row.as != nil {
							nodes[i] = row.as(node.(*memlock.Store))
						}
					}
					return redlock.New(nodes, row.opts...)
				}
				return drivertest.Config{
					Driver:      func() driver.Driver { return reach(stores) },
					Unreachable: func() driver.Driver { return reach(down) },
					Slow:        max(row.slow, time.Millisecond), // it asks for a rank before it stands in the queue
					Overtaken:   row.slow > 0,
				}
			}, row.parts...)
		})
	}
}

// A call is over when a quorum has answered. What is on its way to the other nodes then sets its own TTL there, and must not
// cut short what a later call with a longer one was promised: another process would get the name beside the holder.
func TestALateCommandWithAShorterTTLCutsNothingShort(t *testing.T) {
	t.Parallel()
	for _, renews := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			nodes, kept := memory(5), 0
			late := make([]driver.Driver, len(nodes))
			for i, node := range nodes {
				late[i] = jittery(node.(*memlock.Store))
			}
			d := redlock.New(late, redlock.WithFence())
			const tries = 1000
			for n := range tries {
				c := driver.Claim{Name: fmt.Sprint(n), Token: fmt.Sprint("token of ", n), TTL: 10 * time.Second}
				_, err := d.Acquire(t.Context(), c)
				ok(t, err)
				c.TTL = 30 * time.Second
				promised := c.TTL
				if renews {
					err = d.Renew(t.Context(), []driver.Claim{c})[0]
				} else {
					var g driver.Grant
					g, err = d.Acquire(t.Context(), c)
					promised = cmp.Or(g.TTL, c.TTL)
				}
				if err != nil || promised < c.TTL {
					continue // nothing is promised
				}
				kept++
				time.Sleep(time.Second) // until all has arrived
				whole := 0
				for _, node := range nodes {
					if info, _ := node.(*memlock.Store).Inspect(t.Context(), c.Name); info.Held && info.Remaining > 20*time.Second {
						whole++
					}
				}
				if whole <= len(nodes)/2 {
					t.Errorf("renews %t: %d of %d nodes keep what was promised", renews, whole, len(nodes))
				}
			}
			if kept < tries/4 {
				t.Errorf("renews %t: only %d of %d calls were granted for the whole TTL", renews, kept, tries)
			}
			ok(t, d.Close(t.Context()))
		})
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
	run(t, func(t testing.TB, prefix string) drivertest.Config {
		c := over(t, backendtest.Addrs(nodes), prefix, redlock.WithFence())
		c.Own = func() drivertest.Config {
			own := five(t)
			c := over(t, backendtest.Addrs(own), "holdfast:", redlock.WithFence())
			c.Kill, c.Restart, c.Forgetful = each(own, (*servers.Server).Kill), each(own, (*servers.Server).Restart), true
			return c
		}
		return c
	})
}

func each(nodes []*servers.Server, do func(*servers.Server)) func() {
	return func() {
		for _, s := range nodes {
			do(s)
		}
	}
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	addrs := backendtest.Addrs(five(t))
	run(t, func(t testing.TB, prefix string) drivertest.Config {
		return behind(t, addrs, prefix).Uneven(over(t, addrs, prefix))
	})
}

// run runs the suite. Each case has a prefix of its own.
func run(t *testing.T, open func(t testing.TB, prefix string) drivertest.Config) {
	t.Helper()
	var cases atomic.Int64
	drivertest.Run(t, func(t testing.TB) drivertest.Config { return open(t, fmt.Sprintf("holdfast:%d:", cases.Add(1))) })
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
		Through:   behind(t, addrs, prefix, opts...).Through,
		Slow:      100 * time.Millisecond,
		Overtaken: true,
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
