package redislock_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"math/big"
	"net"
	"os"
	"os/exec"
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
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// The ways by which a client reaches its server, and what changes there.

// handsOver has a name renewed, waited for and handed over.
func handsOver(t *testing.T, locks, other *core.Locker) {
	t.Helper()
	x := acquire(t, locks, "name", core.WithRenewEvery(ttl/10))
	got := next(t, other, "name")
	renewed(t, x)
	ok(t, x.Release(t.Context()))
	ok(t, <-got)
}

// taken are the arguments of a server on which an administrator has taken commands away.
func taken(commands ...string) (args []string) {
	for _, c := range commands {
		args = append(args, "--rename-command", c, "")
	}
	return args
}

func TestLocksWorkByAnyProtocolDatabaseAndSocket(t *testing.T) {
	t.Parallel()
	dir, err := os.MkdirTemp("", "holdfast-") //nolint:usetesting // the path of a socket has at most 107 bytes
	ok(t, err)
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	socket := filepath.Join(dir, "redis.sock")
	for way, c := range map[string]struct {
		args []string
		o    redis.Options
		host string
	}{
		"RESP2":            {o: redis.Options{Protocol: 2}},
		"RESP3":            {o: redis.Options{Protocol: 3}},
		"another database": {o: redis.Options{DB: 5}},
		"a unix socket":    {args: []string{"--unixsocket", socket}, o: redis.Options{Network: "unix", Addr: socket}},
		"IPv6":             {args: []string{"--bind", "127.0.0.1", "::1"}, host: "::1"},
		// Servers before Redis 6 know neither HELLO nor users. The client asks for RESP3.
		"a server that knows RESP2 only": {args: append(taken("HELLO", "CLIENT"), "--requirepass", "secret"), o: redis.Options{Password: "secret"}},
		"without the commands of administrators": {args: taken(
			"FLUSHALL", "FLUSHDB", "CONFIG", "KEYS", "SHUTDOWN", "DEBUG", "MONITOR", "SAVE", "BGSAVE", "BGREWRITEAOF",
			"REPLICAOF", "SLAVEOF", "ACL", "SCRIPT", "CLIENT", "INFO", "COMMAND", "SCAN", "RENAME",
		)},
		"without those of notifications": {args: taken("PUBLISH", "SUBSCRIBE")},
	} {
		t.Run(way, func(t *testing.T) {
			t.Parallel()
			server := servers.Redis(t, c.args...)
			if c.o.Addr == "" {
				c.o.Addr = server.Addr()
			}
			if c.host != "" {
				withIPv6(t)
				_, port, err := net.SplitHostPort(server.Addr())
				ok(t, err)
				c.o.Addr = net.JoinHostPort(c.host, port)
			}
			locks := clusterLocker(t, dial(t, &c.o))
			ok(t, locks.Ready(t.Context()))
			handsOver(t, locks, clusterLocker(t, dial(t, &c.o)))
		})
	}
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

func TestACommandThatIsRenamedIsNamedByTheError(t *testing.T) {
	t.Parallel()
	const forbids, script = "the server forbids or does not know a command that locking needs", "a script calls a command that the server forbids or does not know"
	const instead = "; without scripts, use redislock.NewTx"
	for command, want := range map[string]string{
		"EVALSHA": forbids + instead, "EVAL": forbids + instead, "SET": script + instead, "GET": script + instead, "TIME": script + instead,
		"NewTx WATCH": "the server forbids or does not know ", "NewTx MULTI": "the server forbids or does not know ",
		"NewTx EXEC": "the server forbids or does not know ", "NewTx GET": "the server forbids or does not know ",
	} {
		t.Run(command, func(t *testing.T) {
			t.Parallel()
			command, tx := strings.CutPrefix(command, "NewTx ")
			rdb := dial(t, &redis.Options{Addr: servers.Redis(t, taken(command)...).Addr()})
			locks := locker(t, rdb)
			if tx {
				locks = backendtest.Locker(t, redislock.NewTx(rdb), ttl)
			}
			if said := toldThat(t, locks, want); tx && strings.Contains(said, "without scripts") {
				t.Errorf("%s: it has none", said)
			}
		})
	}
}

// unused is an address at which nobody listens.
func unused(t *testing.T) string {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	ok(t, err)
	defer func() { ok(t, l.Close()) }()
	return l.Addr().String()
}

// daemon runs a program, with the configuration that args name as "conf", until the test ends. It returns once
// somebody listens at addr.
func daemon(t *testing.T, addr, path, conf string, args ...string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "conf")
	ok(t, os.WriteFile(file, []byte(conf), 0o600))
	for i, arg := range args {
		args[i] = strings.ReplaceAll(arg, "conf", file)
	}
	var log bytes.Buffer
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, args...)
	cmd.Stdout, cmd.Stderr = &log, &log
	ok(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("log of %s:\n%s", path, log.String())
		}
	})
	eventually(t, filepath.Base(path)+" listens", func() bool {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err == nil {
			_ = conn.Close()
		}
		return err == nil
	})
}

// haproxy passes connections on to the one of some servers that is the master, and cuts those that are idle.
func haproxy(t *testing.T, idle time.Duration, targets ...*servers.Server) (addr string) {
	t.Helper()
	path := servers.Find(t, "haproxy", "haproxy")
	addr = unused(t)
	var conf strings.Builder
	fmt.Fprintf(&conf, `defaults
  mode tcp
  timeout connect 5s
  timeout client %[1]dms
  timeout server %[1]dms
listen redis
  bind %[2]s
  option tcp-check
  tcp-check send info\ replication\r\n
  tcp-check expect string role:master
  default-server check inter 100ms fall 2 rise 1 on-marked-down shutdown-sessions
`, idle.Milliseconds(), addr)
	for i, s := range targets {
		fmt.Fprintf(&conf, "  server s%d %s\n", i, s.Addr())
	}
	daemon(t, addr, path, conf.String(), "-db", "-f", "conf")
	rdb := dial(t, &redis.Options{Addr: addr})
	eventually(t, "HAProxy has found the master", func() bool { return rdb.Ping(t.Context()).Err() == nil })
	return addr
}

func TestLocksWorkBehindHAProxyWhichCutsIdleConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	addr := haproxy(t, 300*time.Millisecond, servers.Redis(t))
	locks, other := clusterLocker(t, dial(t, &redis.Options{Addr: addr})), clusterLocker(t, dial(t, &redis.Options{Addr: addr}))
	ok(t, locks.Ready(t.Context()))
	x := acquire(t, locks, "held", core.WithTTL(ttl)) // each renewal comes after a cut
	for range 2 {
		handsOver(t, locks, other)
		lasts(t, x)
	}
	ok(t, x.Release(t.Context()))
	w := contend(t, locks, other)
	w.GoOn("through the proxy")
	if n := w.End(); n > 0 {
		t.Errorf("%d calls found the service unavailable", n)
	}
}

// A service with one endpoint moves the name of that endpoint to another server, or HAProxy finds it. Connections that a
// client has go on to the old one.
func TestAFailoverBehindOneEndpointIsFollowed(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	for what, retire := range map[string]func(t *testing.T, old, next *servers.Server){
		"DNS, the old master is a replica": func(t *testing.T, old, next *servers.Server) {
			t.Helper()
			host, port, _ := strings.Cut(next.Addr(), ":")
			ok(t, dial(t, &redis.Options{Addr: old.Addr()}).ReplicaOf(t.Context(), host, port).Err())
		},
		"DNS, the old master is gone":     func(_ *testing.T, old, _ *servers.Server) { old.Kill() },
		"DNS, the old master is silent":   func(_ *testing.T, old, _ *servers.Server) { old.Pause() },
		"HAProxy, the old master is gone": func(_ *testing.T, old, _ *servers.Server) { old.Kill() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			old := servers.Redis(t)
			host, port, _ := strings.Cut(old.Addr(), ":")
			to := servers.Redis(t, "--replicaof", host, port, "--repl-diskless-sync-delay", "0")
			var resolves atomic.Pointer[servers.Server]
			resolves.Store(old)
			o := &redis.Options{Addr: "redis.example:6379", Dialer: func(ctx context.Context, network, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, network, resolves.Load().Addr())
			}}
			if strings.HasPrefix(what, "HAProxy") {
				o = &redis.Options{Addr: haproxy(t, time.Minute, old, to)}
			}
			locks, other := clusterLocker(t, dial(t, o)), clusterLocker(t, dial(t, o))
			x := acquire(t, locks, "held", core.WithRenewEvery(ttl/10))
			got := next(t, other, "held")
			promoted := dial(t, &redis.Options{Addr: to.Addr()})
			eventually(t, "the replica has heard of it", func() bool { return promoted.Exists(t.Context(), "holdfast:held").Val() == 1 })
			ok(t, promoted.ReplicaOf(t.Context(), "no", "one").Err())
			retire(t, old, to)
			resolves.Store(to)
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
			p, _ := own(t, "--user", "locks", "on", ">first", "~*", "&*", "+@all")
			c := &credentials{password: "first", listeners: make(map[auth.CredentialsListener]bool)}
			o := &redis.Options{Addr: p.addr}
			use(o, c)
			locks, other := clusterLocker(t, dial(t, o)), clusterLocker(t, dial(t, o))
			x := acquire(t, locks, "held", core.WithRenewEvery(ttl/10))
			for i := range 3 {
				password := "password-" + strconv.Itoa(i)
				p.do(t, "acl", "setuser", "locks", "resetpass", ">"+password)
				c.set(password)
				ok(t, p.direct.ClientKillByFilter(t.Context(), "user", "locks").Err()) // the subscriptions, too
				renewed(t, x)
				handsOver(t, locks, other)
			}
			ok(t, x.Release(t.Context()))
		})
	}
}

func TestLocksWorkOverTLSWithThoseWhoProveWhoTheyAre(t *testing.T) {
	t.Parallel()
	for what, start := range map[string]func(t *testing.T, args []string) (nodes []*servers.Server, over func(*tls.Config) redis.UniversalClient, fails func()){
		"Redis": func(t *testing.T, args []string) ([]*servers.Server, func(*tls.Config) redis.UniversalClient, func()) {
			t.Helper()
			s := servers.Redis(t, args...)
			return []*servers.Server{s}, func(config *tls.Config) redis.UniversalClient {
				return dial(t, &redis.Options{Addr: s.TLSAddr(), TLSConfig: config})
			}, nil
		},
		"Sentinel": func(t *testing.T, args []string) ([]*servers.Server, func(*tls.Config) redis.UniversalClient, func()) {
			t.Helper()
			s := servers.Sentinel(t, "secret", args...)
			var addrs []string
			for _, w := range s.Sentinels {
				addrs = append(addrs, w.TLSAddr())
			}
			over := func(config *tls.Config) redis.UniversalClient {
				rdb := redis.NewFailoverClient(&redis.FailoverOptions{
					MasterName: servers.MasterName, SentinelAddrs: addrs, TLSConfig: config,
					SentinelUsername: "default", SentinelPassword: "secret", Username: "default", Password: "secret",
				})
				t.Cleanup(func() { _ = rdb.Close() })
				return rdb
			}
			return append(slices.Clone(s.Nodes), s.Sentinels...), over, func() {
				inStep(t, dial(t, &redis.Options{Addr: s.Nodes[0].Addr(), Password: "secret"}), "in-step")
				s.Nodes[0].Kill()
				s.AwaitMaster(s.Nodes[1])
			}
		},
		"Cluster": func(t *testing.T, args []string) ([]*servers.Server, func(*tls.Config) redis.UniversalClient, func()) {
			t.Helper()
			c := servers.Cluster(t, args...)
			return c.Nodes, func(config *tls.Config) redis.UniversalClient {
				rdb := redis.NewClusterClient(&redis.ClusterOptions{
					Addrs: []string{c.Nodes[0].TLSAddr()}, TLSConfig: config, ContextTimeoutEnabled: true, MaintNotificationsConfig: quiet, // finds the others
				})
				t.Cleanup(func() { _ = rdb.Close() })
				return rdb
			}, nil
		},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			if what != "Redis" {
				backendtest.Slow(t)
			}
			ours, theirs := newAuthority(t), newAuthority(t)
			nodes, over, fails := start(t, ours.args())
			var addrs []string
			for _, n := range nodes {
				addrs = append(addrs, n.TLSAddr())
				if err := dial(t, &redis.Options{Addr: n.TLSAddr()}).Ping(t.Context()).Err(); err == nil {
					t.Errorf("%s answers without TLS", n.TLSAddr())
				}
			}
			rdb := over(ours.client())
			locks, other := clusterLocker(t, rdb), clusterLocker(t, over(ours.client()))
			handsOver(t, locks, other)
			if fails != nil {
				x := acquire(t, locks, "held", core.WithRenewEvery(ttl/10))
				fails()
				renewed(t, x) // by the new master
				ok(t, x.Release(t.Context()))
			}
			if cluster, is := rdb.(*redis.ClusterClient); is {
				for i := range 60 { // at all three masters
					ok(t, acquire(t, locks, fmt.Sprintf("name-%d", i)).Release(t.Context()))
				}
				ok(t, cluster.ForEachShard(t.Context(), func(_ context.Context, n *redis.Client) error {
					if !slices.Contains(addrs, n.Options().Addr) {
						return fmt.Errorf("the client was sent to %s", n.Options().Addr)
					}
					return nil
				}))
			}
			for who, config := range map[string]*tls.Config{
				"a server that nobody vouches for": {RootCAs: theirs.pool, Certificates: []tls.Certificate{ours.pair}},
				"a client without a certificate":   {RootCAs: ours.pool},
				"a client that nobody vouches for": {RootCAs: ours.pool, Certificates: []tls.Certificate{theirs.pair}},
			} {
				if _, err := locker(t, over(config)).TryAcquire(t.Context(), "name"); err == nil {
					t.Error(who)
				} else {
					is(t, err, core.ErrUnavailable)
				}
			}
		})
	}
}

// authority vouches for itself, as server and as client.
type authority struct {
	pool              *x509.CertPool
	pair              tls.Certificate
	certFile, keyFile string
}

// client is what one of its clients has, and args are those of its servers.
func (a *authority) client() *tls.Config {
	return &tls.Config{RootCAs: a.pool, Certificates: []tls.Certificate{a.pair}, MinVersion: tls.VersionTLS12}
}

func (a *authority) args() []string {
	return []string{"--tls-cert-file", a.certFile, "--tls-key-file", a.keyFile, "--tls-ca-cert-file", a.certFile}
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ok(t, err)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: "holdfast test"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	ok(t, err)
	private, err := x509.MarshalPKCS8PrivateKey(key)
	ok(t, err)
	certPEM := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: cert})
	keyPEM := pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})
	a := &authority{pool: x509.NewCertPool(), certFile: filepath.Join(t.TempDir(), "cert.pem"), keyFile: filepath.Join(t.TempDir(), "key.pem")}
	a.pool.AppendCertsFromPEM(certPEM)
	a.pair, err = tls.X509KeyPair(certPEM, keyPEM)
	ok(t, err)
	ok(t, os.WriteFile(a.certFile, certPEM, 0o600))
	ok(t, os.WriteFile(a.keyFile, keyPEM, 0o600))
	return a
}
