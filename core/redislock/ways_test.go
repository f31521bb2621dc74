package redislock_test

import (
	"context"
	"fmt"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/auth"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// The ways by which a client reaches its server, and what changes there.

func TestLocksWorkByAnyProtocolDatabaseAndSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "holdfast-") //nolint:usetesting // the path of a socket has at most 107 bytes
	ok(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "redis.sock")
	server := servers.Redis(t, "--unixsocket", socket)
	for way, o := range map[string]*redis.Options{
		"RESP2":            {Addr: server.Addr(), Protocol: 2},
		"RESP3":            {Addr: server.Addr(), Protocol: 3},
		"another database": {Addr: server.Addr(), DB: 5},
		"a unix socket":    {Network: "unix", Addr: socket},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			prefix := redislock.WithPrefix(way + ":")
			locks := clusterLocker(t, dial(t, o), prefix)
			ok(t, locks.Ready(t.Context()))
			handsOver(t, locks, clusterLocker(t, dial(t, o), prefix))
		})
	}
}

// Servers before Redis 6 know neither HELLO nor users.
func TestLocksWorkOnAServerThatKnowsRESP2Only(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t, "--rename-command", "HELLO", "", "--rename-command", "CLIENT", "", "--requirepass", "secret")
	o := &redis.Options{Addr: server.Addr(), Password: "secret"} // asks for RESP3
	locks := clusterLocker(t, dial(t, o))
	ok(t, locks.Ready(t.Context()))
	handsOver(t, locks, clusterLocker(t, dial(t, o)))
}

// withIPv6 fails or skips the test where the machine has no IPv6.
func withIPv6(t *testing.T) {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp6", "[::1]:0")
	if err != nil {
		servers.Lacks(t, "this machine has no IPv6: "+err.Error())
	}
	ok(t, l.Close())
}

func TestLocksWorkOverIPv6(t *testing.T) {
	t.Parallel()
	withIPv6(t)
	server := servers.Redis(t, "--bind", "127.0.0.1", "::1")
	_, port, err := net.SplitHostPort(server.Addr())
	ok(t, err)
	o := &redis.Options{Addr: net.JoinHostPort("::1", port)}
	handsOver(t, clusterLocker(t, dial(t, o)), clusterLocker(t, dial(t, o)))
}

// The nodes call themselves by addresses with colons, in CLUSTER SLOTS and where they send a client elsewhere.
func TestLocksWorkOnAClusterOverIPv6(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	withIPv6(t)
	c := servers.Cluster(t, "--bind", "127.0.0.1", "::1", "--cluster-announce-ip", "::1")
	locks, other := clusterLocker(t, dialCluster(t, c, true)), clusterLocker(t, dialCluster(t, c, true), redislock.WithReplicas(1, time.Second))
	handsOver(t, locks, other)
	handsOver(t, other, locks)
	x, y := acquire(t, locks, "x"), acquire(t, other, "y")
	w := contend(t, loaded, locks, other)
	for _, to := range c.Nodes[:3] {
		reshard(t, c, append(slotsOf(t, c, loaded, 0), keySlot(t, c, "holdfast:x"), keySlot(t, c, "holdfast:y")), to)
		w.flows(t)
	}
	w.undisturbed(t)
	renewedAndReleased(t, []*core.Lease{x, y})
}

// A service with one endpoint moves the name of that endpoint to another server. Connections that a client has go
// on to the old one.
func TestAFailoverByDNSIsFollowed(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	for what, retire := range map[string]func(old, next *servers.Server, admin *redis.Client){
		"the old master is a replica": func(_, next *servers.Server, admin *redis.Client) {
			host, port, _ := net.SplitHostPort(next.Addr())
			ok(t, admin.ReplicaOf(t.Context(), host, port).Err())
		},
		"the old master is gone":   func(old, _ *servers.Server, _ *redis.Client) { old.Kill() },
		"the old master is silent": func(old, _ *servers.Server, _ *redis.Client) { old.Pause() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			old := servers.Redis(t)
			host, port, _ := strings.Cut(old.Addr(), ":")
			next := servers.Redis(t, "--replicaof", host, port, "--repl-diskless-sync-delay", "0")
			var resolves atomic.Pointer[servers.Server]
			resolves.Store(old)
			o := &redis.Options{Addr: "redis.example:6379", Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, resolves.Load().Addr())
			}}
			locks, other := clusterLocker(t, dial(t, o)), clusterLocker(t, dial(t, o))
			x := acquire(t, locks, "held", core.WithRenewEvery(ttl/10))
			got := make(chan error, 1)
			go func() {
				y, err := other.Acquire(t.Context(), "held")
				if err == nil {
					err = y.Release(t.Context())
				}
				got <- err
			}()
			admin, promoted := dial(t, &redis.Options{Addr: old.Addr()}), dial(t, &redis.Options{Addr: next.Addr()})
			eventually(t, "the replica has heard of it", func() bool { return promoted.Exists(t.Context(), "holdfast:held").Val() == 1 })
			ok(t, promoted.ReplicaOf(t.Context(), "no", "one").Err())
			retire(old, next, admin)
			resolves.Store(next)
			renewed(t, x)
			ok(t, x.Release(t.Context()))
			ok(t, <-got)
			handsOver(t, locks, other)
		})
	}
}

// credentials are those that the server wants at the moment. Who listens is told of new ones.
type credentials struct {
	mu        sync.Mutex // protects what follows
	password  string
	listeners map[auth.CredentialsListener]bool
}

func (c *credentials) get() (user, password string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return "locks", c.password
}

func (c *credentials) set(password string) {
	c.mu.Lock()
	c.password = password
	listeners := slices.Collect(maps.Keys(c.listeners))
	c.mu.Unlock()
	for _, l := range listeners {
		l.OnNext(auth.NewBasicCredentials("locks", password))
	}
}

// Subscribe implements auth.StreamingCredentialsProvider.
func (c *credentials) Subscribe(l auth.CredentialsListener) (auth.Credentials, auth.UnsubscribeFunc, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.listeners == nil {
		c.listeners = make(map[auth.CredentialsListener]bool)
	}
	c.listeners[l] = true
	return auth.NewBasicCredentials("locks", c.password), func() error {
		c.mu.Lock()
		defer c.mu.Unlock()
		delete(c.listeners, l)
		return nil
	}, nil
}

func TestAPasswordThatChangesCostsNoLease(t *testing.T) {
	t.Parallel()
	for provider, use := range map[string]func(o *redis.Options, c *credentials){
		"CredentialsProvider": func(o *redis.Options, c *credentials) { o.CredentialsProvider = c.get },
		"CredentialsProviderContext": func(o *redis.Options, c *credentials) {
			o.CredentialsProviderContext = func(context.Context) (string, string, error) {
				user, password := c.get()
				return user, password, nil
			}
		},
		"StreamingCredentialsProvider": func(o *redis.Options, c *credentials) { o.StreamingCredentialsProvider = c },
	} {
		t.Run(provider, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			w.do(t, "acl", "setuser", "locks", "on", ">first", "~*", "&*", "+@all")
			c := &credentials{password: "first"}
			o := &redis.Options{Addr: w.server.Addr()}
			use(o, c)
			locks, other := clusterLocker(t, dial(t, o)), clusterLocker(t, dial(t, o))
			x := acquire(t, locks, "held", core.WithRenewEvery(ttl/10))
			for i := range 3 {
				next := "password-" + strconv.Itoa(i)
				w.do(t, "acl", "setuser", "locks", "resetpass", ">"+next)
				c.set(next)
				ok(t, w.direct.ClientKillByFilter(t.Context(), "user", "locks").Err()) // the subscriptions, too
				renewed(t, x)
				handsOver(t, locks, other)
			}
			ok(t, x.Release(t.Context()))
		})
	}
}

func TestAPasswordThatIsOutOfDateIsToldAtOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(t, "acl", "setuser", "locks", "on", ">first", "~*", "&*", "+@all")
	locks := locker(t, dial(t, &redis.Options{Addr: w.server.Addr(), Username: "locks", Password: "first"}))
	ok(t, locks.Ready(t.Context()))
	w.do(t, "acl", "setuser", "locks", "resetpass", ">next")
	ok(t, w.direct.ClientKillByFilter(t.Context(), "user", "locks").Err())
	told(t, locks, "WRONGPASS: the server does not know this user and password")
}

// told fails the test unless Ready and an acquire say what is wrong. It returns what they say.
func told(t *testing.T, locks *core.Locker, want string) string {
	t.Helper()
	ready := locks.Ready(t.Context())
	is(t, ready, core.ErrUnavailable)
	_, err := locks.Acquire(t.Context(), "name")
	is(t, err, core.ErrUnavailable)
	said := fmt.Sprintf("%v; Ready: %v", driver.Reason(err), ready)
	if !strings.Contains(driver.Reason(err), want) || !strings.Contains(said[len(driver.Reason(err)):], want) {
		t.Errorf("%v: %s: does not say %q", err, said, want)
	}
	t.Log(ready)
	return said
}
