package redislock_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// What servers say of themselves, shortened.
const (
	infoRedis   = "# Server\r\nredis_version:7.0.15\r\n\r\n# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\r\n# Replication\r\nrole:master\r\n\r\n# Modules\r\nmodule:name=ReJSON,ver=20606,api=1\r\n"
	infoNoLimit = "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n\r\n# Replication\r\nrole:master\r\n"
	infoReplica = "# Replication\r\nrole:slave\r\nmaster_host:10.0.0.1\r\nslave_read_only:1\r\n"
	infoDragon  = "# Server\r\nredis_version:7.4.0\r\ndragonfly_version:df-v1.40.1\r\n\r\n# Memory\r\nmaxmemory:1073741824\r\ncache_mode:store\r\nmaxmemory_policy:noeviction\r\n\r\n# Replication\r\nrole:master\r\n"
)

// unfitServers say something of themselves that locks cannot be kept with.
var unfitServers = map[string]struct{ info, says string }{
	"an active replica":  {"# Replication\r\nrole:active-replica\r\nmaster_host:10.0.0.1\r\nslave_read_only:0\r\n", "active-replica"},
	"active-active":      {"# Modules\r\nmodule:name=crdt,ver=60402,api=1\r\n\r\n# Replication\r\nrole:master\r\n", "Active-Active"},
	"a writable replica": {"# Replication\r\nrole:slave\r\nmaster_host:10.0.0.1\r\nslave_read_only:0\r\n", "its master knows nothing"},
	"all keys evicted":   {"# Memory\r\nmaxmemory:104857600\r\nmaxmemory_policy:allkeys-lru\r\n", "maxmemory-policy to noeviction"},
	"locks evicted":      {"# Memory\r\nmaxmemory:104857600\r\nmaxmemory_policy:volatile-ttl\r\n", "maxmemory-policy to noeviction"},
	"Dragonfly, a cache": {"# Server\r\ndragonfly_version:df-v1.40.1\r\n\r\n# Memory\r\nmaxmemory:104857600\r\ncache_mode:cache\r\n", "maxmemory-policy to noeviction"},
	"Garnet":             {"# Server\r\ngarnet_version:1.0.84\r\nredis_version:7.4.3\r\n", "redislock.NewTx"},
}

// asking is a server that answers INFO with a text, or an error, and grants everything else.
type asking struct {
	info          atomic.Pointer[string]
	infos, claims atomic.Int64
}

func (a *asking) answer(args []string) string {
	if args[0] != "info" {
		a.claims.Add(1)
		return bulk("1795000000000000")
	}
	a.infos.Add(1)
	text := *a.info.Load()
	if text == "" || strings.HasPrefix(text, "-") {
		return text
	}
	return bulk(text)
}

func newAsking(t *testing.T, info string) (*asking, map[string]driver.Driver, *redis.Client) {
	t.Helper()
	a := &asking{}
	a.info.Store(&info)
	var answer atomic.Pointer[func([]string) string]
	says := a.answer
	answer.Store(&says)
	rdb := dial(t, &redis.Options{Protocol: 2, MaxRetries: -1, Dialer: pipes(t, func(conn net.Conn) { echo(conn, &answer) })})
	return a, storesOn(t, &answer), rdb
}

func TestAServerThatSaysThatItIsUnfitIsRefusedAtTheFirstClaim(t *testing.T) {
	t.Parallel()
	for what, c := range unfitServers {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a, stores, rdb := newAsking(t, c.info)
			for kind, s := range stores {
				if kind == "transactions" && what == "Garnet" {
					continue // they do not need scripts
				}
				_, err := s.Acquire(t.Context(), theClaim())
				if !errors.Is(err, driver.ErrRefused) || !errors.Is(err, driver.ErrNotSent) || !strings.Contains(driver.Reason(err), c.says) {
					t.Errorf("%s: %v, since %q", kind, err, driver.Reason(err))
				}
			}
			if n := a.claims.Load(); n > 0 {
				t.Errorf("%d claims were sent", n)
			}
			_, err := redislock.New(rdb, redislock.WithoutServerCheck()).Acquire(t.Context(), theClaim())
			ok(t, err)
			locks, err := locker(t, rdb).With(core.WithTTL(time.Hour))
			ok(t, err)
			for _, ask := range []func() error{
				func() error { return locks.Ready(t.Context()) },
				func() error { _, err := locks.Acquire(t.Context(), "name"); return err }, // it does not ask for an hour
			} {
				err := ask()
				is(t, err, core.ErrUnavailable)
				if err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), "WithoutServerCheck") {
					t.Errorf("%v does not say what to do", err)
				}
			}
		})
	}
}

func TestAFitServerIsAskedOnce(t *testing.T) {
	t.Parallel()
	for what, info := range map[string]string{
		"Redis": infoRedis, "without a limit": infoNoLimit, "a replica, which says so itself": infoReplica, "Dragonfly": infoDragon,
		"no text": "# nothing\r\n", "no permission": "-NOPERM User locks has no permissions to run the 'info' command\r\n",
		"no such command": "-ERR unknown command 'info'\r\n",
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a, _, rdb := newAsking(t, info)
			s := redislock.New(rdb)
			for range 3 {
				_, err := s.Acquire(t.Context(), theClaim())
				ok(t, err)
			}
			if n := a.infos.Load(); n != 1 {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

func TestClaimsGoOnWhereInfoIsNeverAnswered(t *testing.T) {
	t.Parallel()
	a, _, rdb := newAsking(t, "")
	s := redislock.New(rdb)
	for range 5 {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		_, err := s.Acquire(ctx, theClaim())
		cancel()
		ok(t, err)
	}
	if n := a.infos.Load(); n != 3 {
		t.Errorf("asked %d times", n)
	}
}

// The first claims come when a service starts, and all of it is busy.
func TestAServerThatIsTooBusyToSayWhatItIsIsAskedAgain(t *testing.T) {
	t.Parallel()
	for what, then := range map[string]string{"no answer": "", "a proxy's": "-ERR upstream failure\r\n", "another client's script": "-BUSY Redis is busy running a script\r\n"} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			a, _, rdb := newAsking(t, then)
			s := redislock.New(rdb)
			_, err := s.Acquire(t.Context(), theClaim())
			ok(t, err)
			says := unfitServers["all keys evicted"].info
			a.info.Store(&says)
			if _, err := s.Acquire(t.Context(), theClaim()); !errors.Is(err, driver.ErrRefused) {
				t.Errorf("%v", err)
			}
		})
	}
}

func TestNobodyAsksAnyMoreOnceInfoIsRefused(t *testing.T) {
	t.Parallel()
	a, _, rdb := newAsking(t, "")
	s := redislock.New(rdb)
	for range 3 {
		_, err := s.Acquire(t.Context(), theClaim())
		ok(t, err)
		says := "-NOPERM User locks has no permissions to run the 'info' command\r\n"
		a.info.Store(&says)
	}
	if n := a.infos.Load(); n != 2 {
		t.Errorf("asked %d times", n)
	}
}

func TestClaimsThatReachNoServerDoNotUseTheInquiryUp(t *testing.T) {
	t.Parallel()
	a, _, rdb := newAsking(t, unfitServers["all keys evicted"].info)
	up := redislock.New(rdb)
	var down atomic.Bool
	down.Store(true)
	opts := *rdb.Options()
	connect := opts.Dialer
	opts.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
		if down.Load() {
			return nil, errors.New("connection refused")
		}
		return connect(ctx, network, addr)
	}
	s := redislock.New(dial(t, &opts))
	for range 5 {
		if _, err := s.Acquire(t.Context(), theClaim()); err == nil {
			t.Fatal("granted by nobody")
		}
	}
	down.Store(false)
	for _, s := range []driver.Driver{up, s} {
		if _, err := s.Acquire(t.Context(), theClaim()); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%v", err)
		}
	}
	if n := a.claims.Load(); n > 0 {
		t.Errorf("%d claims were sent", n)
	}
}

func TestAServerThatWasMendedIsUsedWithoutARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(t, "config", "set", "maxmemory", "100mb")
	w.do(t, "config", "set", "maxmemory-policy", "allkeys-lru")
	locks, err := w.locks.With(core.WithTTL(time.Minute)) // a busy machine answers in time
	ok(t, err)
	err = locks.Ready(t.Context())
	is(t, err, core.ErrUnavailable)
	if err == nil || !strings.Contains(err.Error(), "evicts") {
		t.Errorf("%v", err)
	}
	w.do(t, "config", "set", "maxmemory-policy", "noeviction")
	ok(t, locks.Ready(t.Context()))
	w.do(t, "replicaof", "127.0.0.1", "1")
	w.do(t, "config", "set", "replica-read-only", "no")
	err = w.other.Ready(t.Context())
	is(t, err, core.ErrUnavailable)
	if err == nil || !strings.Contains(err.Error(), "replica") {
		t.Errorf("%v", err)
	}
}

// Somebody has mistaken the address.
func TestAServiceThatIsNotRedisIsToldAtOnce(t *testing.T) {
	t.Parallel()
	web := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(web.Close)
	for what, addr := range map[string]string{
		"HTTP": web.Listener.Addr().String(), "memcached": servers.Memcached(t).Addr(), "SSH": greeter(t, "SSH-2.0-OpenSSH_9.2p1\r\n"), "mail": greeter(t, "220 mail.example ESMTP\r\n"),
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			locks, err := locker(t, dial(t, &redis.Options{Addr: addr})).With(core.WithTTL(time.Hour))
			ok(t, err)
			for _, err := range []error{locks.Ready(t.Context()), errOf(locks.Acquire(t.Context(), "name"))} {
				is(t, err, core.ErrUnavailable)
				if err == nil || !strings.Contains(err.Error(), "not Redis but another service") {
					t.Errorf("%v", err)
				}
			}
		})
	}
}

func errOf(_ *core.Lease, err error) error { return err }

// greeter says one line to whoever comes, and listens.
func greeter(t *testing.T, line string) (addr string) {
	t.Helper()
	return accept(t, func(conn net.Conn) {
		defer func() { _ = conn.Close() }()
		_, _ = io.WriteString(conn, line)
		_, _ = io.Copy(io.Discard, conn)
	})
}

// A proxy that has lost its connection to the server does not know whether the server has executed the command.
func TestWhatAProxySaysInTheServersPlaceIsAnOpenOutcome(t *testing.T) {
	t.Parallel()
	for _, says := range []string{
		"upstream failure",                              // Envoy
		"ERR server connection close",                   // predixy
		"ERR Cluster node disconnected: 127.0.0.1:7000", // redis-cluster-proxy
		"ERR Connection timed out",                      // twemproxy
		"ERR Connection reset by peer",                  // twemproxy
		"ERR server connection closed",                  // others
		"ERR proxy timeout, try it again",               // others
	} {
		t.Run(says, func(t *testing.T) {
			t.Parallel()
			s := redislock.New(dial(t, &redis.Options{Addr: refuser(t, says), Protocol: 2}))
			_, err := s.Acquire(t.Context(), theClaim())
			if err == nil || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrRefused) || !driver.Explain(err).Nobody {
				t.Errorf("%v is taken for an answer of the server's", err)
			}
		})
	}
}

// A name may have any words in it.
func TestAnEchoOfANameIsNotTakenForAProxysWord(t *testing.T) {
	t.Parallel()
	s := redislock.New(dial(t, &redis.Options{Addr: refuser(t, "ERR unknown command 'evalsha', with args beginning with: 'upstream timeout'"), Protocol: 2}))
	_, err := s.Acquire(t.Context(), theClaim())
	if !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, driver.ErrRefused) {
		t.Errorf("%v", err)
	}
}
