package redislock_test

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
)

func TestConformanceOnMiniredis(t *testing.T) {
	t.Parallel()
	drivertest.RunInBubble(t, func(t testing.TB) drivertest.Config {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		s := site{client: func(through dialer) redis.UniversalClient {
			if through == nil {
				through = func(context.Context, string, string) (net.Conn, error) { return buffered(m.Dial()) }
			}
			// go-redis would look up the name localhost, which spoils other bubbles, and after as many failed dials as the pool has room for
			// it dials in a goroutine that outlives Close.
			return dial(t, &redis.Options{Addr: "127.0.0.1:0", Dialer: through, PoolSize: 100})
		}}
		s.admin = s.client(nil)
		return s.config(t, "holdfast:")
	})
}

func TestConformanceOnRedis(t *testing.T) {
	t.Parallel()
	s := atRedis(t, servers.Redis(t), forClaims, withLooks)
	s.names = 10_000
	s.each(t, func(t testing.TB) (site, func(), func()) {
		own := servers.Redis(t, knowing(forClaims, withLooks)...)
		return atRedis(t, own, forClaims, withLooks), own.Kill, own.Restart
	})
}

func TestConformanceWithTheLeastPermissionsAndReplicas(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server := servers.Redis(t, "--repl-diskless-sync-delay", "0")
	follow(t, server)
	s := atRedis(t, server, forClaims, withLooks, withWait)
	s.opts = []redislock.Option{redislock.WithReplicas(1, time.Second)}
	s.each(t, nil)
}

func TestConformanceOfAPlainClientWhereSlotsAreChecked(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	s := atRedis(t, slotted(t), forClaims, withLooks, withSlots)
	s.silent = true // the channels are sharded
	s.each(t, nil)
}

func TestConformanceOnCluster(t *testing.T) {
	t.Parallel()
	inCluster(t, servers.Cluster(t)).each(t, func(t testing.TB) (site, func(), func()) {
		c := servers.Cluster(t, knowing(forClaims, withLooks, withSlots)...)
		slot := keySlot(t, c, "holdfast:name")
		master := c.Owner(slot)
		return inCluster(t, c), func() {
				inStep(t, dial(t, &redis.Options{Addr: master.Addr()}), "{holdfast:name}:in-step")
				master.Kill()
			}, func() {
				c.Owner(slot) // the replica has taken over
				master.Restart()
				c.AwaitComplete()
			}
	})
}

func TestConformanceBySentinel(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	bySentinel(t, servers.Sentinel(t, "secret")).each(t, func(t testing.TB) (site, func(), func()) {
		s := servers.Sentinel(t, "secret")
		return bySentinel(t, s), func() {
				inStep(t, dial(t, &redis.Options{Addr: s.Nodes[0].Addr(), Password: "secret"}), "in-step")
				s.Nodes[0].Kill()
			}, func() {
				s.AwaitMaster(s.Nodes[1])
				s.Nodes[0].Restart()
			}
	})
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	for what, at := range map[string]func(t testing.TB) site{
		"Redis":    func(t testing.TB) site { return atRedis(t, servers.Redis(t), forClaims, withLooks) },
		"Cluster":  func(t testing.TB) site { return inCluster(t, servers.Cluster(t)) },
		"Sentinel": func(t testing.TB) site { return bySentinel(t, servers.Sentinel(t, "secret")) },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := at(t)
			s.run(t, func(t testing.TB, prefix string) drivertest.Config {
				return s.process(t, prefix).Uneven(s.config(t, prefix))
			})
		})
	}
}

type dialer = func(ctx context.Context, network, addr string) (net.Conn, error)

// site is servers, and how processes reach them, with the permissions of the docs.
type site struct {
	nodes  []*servers.Server                          // before which a case may put proxies
	admin  redis.UniversalClient                      // sees and does what other software does
	client func(through dialer) redis.UniversalClient // straight if that is nil
	opts   []redislock.Option
	silent bool // nobody else hears what waiters are told, if they are
	names  int  // used once each; 100 where each takes long: Go interprets the scripts, or the network is slow
}

// atRedis is a server, used with some permissions.
func atRedis(t testing.TB, server *servers.Server, permissions ...[]any) site {
	t.Helper()
	allow(t, server.Addr(), permissions...)
	s := site{nodes: []*servers.Server{server}, admin: dial(t, &redis.Options{Addr: server.Addr()})}
	s.client = func(through dialer) redis.UniversalClient { return dial(t, asLocks(server.Addr(), through)) }
	return s
}

// asLocks are the options of a client with the permissions of the docs.
func asLocks(addr string, through dialer) *redis.Options {
	return &redis.Options{Addr: addr, Username: "locks", Password: "secret", Dialer: through}
}

func inCluster(t testing.TB, c *servers.RedisCluster) site {
	t.Helper()
	for _, n := range c.Nodes { // permissions are not replicated
		allow(t, n.Addr(), forClaims, withLooks, withSlots)
	}
	return site{nodes: c.Nodes, admin: dialCluster(t, c, true), silent: true, client: func(through dialer) redis.UniversalClient {
		return clusterAsLocks(t, c, through)
	}}
}

func clusterAsLocks(t testing.TB, c *servers.RedisCluster, through dialer) *redis.ClusterClient {
	t.Helper()
	return warmCluster(t, &redis.ClusterOptions{
		Addrs: c.Addrs(), Username: "locks", Password: "secret", Dialer: through, ContextTimeoutEnabled: through == nil,
	})
}

// bySentinel is a master that the Sentinels name.
func bySentinel(t testing.TB, s *servers.RedisSentinel) site {
	t.Helper()
	return site{
		nodes: s.Nodes, admin: dial(t, &redis.Options{Addr: s.Nodes[0].Addr(), Password: "secret"}),
		client: func(through dialer) redis.UniversalClient { return dialSentinel(t, s, "secret", through) },
	}
}

// each runs the suite at servers that all cases share. own makes others for the case that kills them: what kills them, and
// what brings them back.
func (s site) each(t *testing.T, own func(t testing.TB) (another site, kill, restart func())) {
	t.Helper()
	s.run(t, func(t testing.TB, prefix string) drivertest.Config {
		c := s.config(t, prefix)
		if own != nil {
			c.Own = func() drivertest.Config {
				o, kill, restart := own(t)
				c := o.config(t, "holdfast:")
				c.Kill, c.Restart = kill, restart
				c.Forgetful = len(o.nodes) == 1 && !o.silent
				return c
			}
		}
		return c
	})
}

// run runs the suite. Each case has a prefix of its own.
func (s site) run(t *testing.T, open func(t testing.TB, prefix string) drivertest.Config) {
	t.Helper()
	var cases atomic.Int64
	drivertest.Run(t, func(t testing.TB) drivertest.Config { return open(t, fmt.Sprintf("holdfast:%d:", cases.Add(1))) })
}

func (s site) backend(through dialer, prefix string) driver.Driver {
	return redislock.New(s.client(through), append(slices.Clone(s.opts), redislock.WithPrefix(prefix))...)
}

// process makes processes that reach each node through a proxy.
func (s site) process(t testing.TB, prefix string) backendtest.Process {
	return func() (driver.Driver, []*faultproxy.Proxy) {
		through, proxies := proxied(t, s.nodes)
		return s.backend(through, prefix), proxies
	}
}

// config is the service, and what other software sees there, and does.
func (s site) config(t testing.TB, prefix string) drivertest.Config {
	t.Helper()
	c := drivertest.Config{
		Names:     cmp.Or(s.names, 100),
		Driver:    func() driver.Driver { return s.backend(nil, prefix) },
		Overwrite: func(name string) { ok(t, s.admin.Set(t.Context(), prefix+name, "bm90IGhvbGRmYXN0J3M=", 0).Err()) },
		Delete:    func(name string) { ok(t, s.admin.Del(t.Context(), prefix+name).Err()) },
	}
	if s.nodes != nil {
		c.Through = s.process(t, prefix).Through
	}
	if _, ok := s.admin.(*redis.Client); !ok {
		return c // the keys are at several nodes
	}
	c.Unreachable = func() driver.Driver { return s.backend(nowhere, prefix) }
	c.Leftovers = func() (left []string) {
		for _, key := range s.admin.Keys(t.Context(), "*"+prefix+"*").Val() {
			if !strings.HasSuffix(key, ":v1:fence") {
				left = append(left, key)
			}
		}
		return left
	}
	if !s.silent {
		c.Messages = func(string) (func() []drivertest.Message, func(drivertest.Message)) {
			return messages(t, s.admin, prefix)
		}
	}
	return c
}

func nowhere(ctx context.Context, _, _ string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:1")
}

// messages hears all that is told on channels with a prefix, and tells it again.
func messages(t testing.TB, rdb redis.UniversalClient, prefix string) (func() []drivertest.Message, func(drivertest.Message)) {
	t.Helper()
	var mu sync.Mutex // protects all
	var all []drivertest.Message
	sub := rdb.PSubscribe(t.Context(), "*"+prefix+"*")
	t.Cleanup(func() { _ = sub.Close() })
	_, err := sub.Receive(t.Context())
	ok(t, err)
	go func() {
		for {
			msg, err := sub.ReceiveMessage(context.Background())
			if err != nil {
				return // closed
			}
			mu.Lock()
			all = append(all, drivertest.Message{To: msg.Channel, Text: msg.Payload})
			mu.Unlock()
		}
	}()
	heard := func() []drivertest.Message {
		mu.Lock()
		defer mu.Unlock()
		return slices.Clone(all)
	}
	return heard, func(msg drivertest.Message) {
		if err := rdb.Publish(context.Background(), msg.To, msg.Text).Err(); err != nil {
			t.Error(err)
		}
	}
}

// proxied dials each of some servers through a proxy of its own.
func proxied(t testing.TB, nodes []*servers.Server) (dialer, []*faultproxy.Proxy) {
	t.Helper()
	proxies := make([]*faultproxy.Proxy, len(nodes))
	instead := make(map[string]string, len(nodes))
	for i, n := range nodes {
		proxies[i] = faultproxy.New(t, n.Addr())
		instead[n.Addr()] = proxies[i].Addr()
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, network, cmp.Or(instead[addr], addr))
	}, proxies
}

// inStep returns once a replica has all that its master had.
func inStep(t testing.TB, rdb *redis.Client, key string) {
	t.Helper()
	conn := rdb.Conn() // WAIT is about what its own connection has written
	defer func() { ok(t, conn.Close()) }()
	ok(t, conn.Set(t.Context(), key, "", time.Minute).Err())
	if n, err := conn.Wait(t.Context(), 1, 0).Result(); err != nil || n < 1 {
		t.Errorf("%d replicas: %v", n, err)
	}
}

// bufferedConn is a connection whose writes do not wait for a reader. A go-redis
// subscription reads under the mutex under which it writes: over a bare net.Pipe, both ends
// would wait for the other to read.
type bufferedConn struct {
	net.Conn
	out    chan []byte
	closed chan struct{}
	once   sync.Once
}

func buffered(conn net.Conn, err error) (net.Conn, error) {
	if err != nil {
		return nil, err
	}
	c := &bufferedConn{Conn: conn, out: make(chan []byte, 1024), closed: make(chan struct{})}
	go c.pump()
	return c, nil
}

func (c *bufferedConn) Write(p []byte) (int, error) {
	select {
	case c.out <- slices.Clone(p):
		return len(p), nil
	case <-c.closed:
		return 0, net.ErrClosed
	}
}

func (c *bufferedConn) pump() {
	for {
		select {
		case p := <-c.out:
			if _, err := c.Conn.Write(p); err != nil {
				return
			}
		case <-c.closed:
			return
		}
	}
}

func (c *bufferedConn) Close() error {
	c.once.Do(func() { close(c.closed) })
	return c.Conn.Close()
}
