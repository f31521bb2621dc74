package redislock_test

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

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
	handsOver(t, locks, other)
	lasts(t, x)
	handsOver(t, locks, other)
	ok(t, x.Release(t.Context()))
	w := contend(t, loaded, locks, other)
	w.flows(t)
	w.undisturbed(t)
}

func TestAFailoverBehindHAProxyIsFollowed(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	old := servers.Redis(t)
	host, port, _ := strings.Cut(old.Addr(), ":")
	next := servers.Redis(t, "--replicaof", host, port, "--repl-diskless-sync-delay", "0")
	addr := haproxy(t, time.Minute, old, next)
	locks, other := clusterLocker(t, dial(t, &redis.Options{Addr: addr})), clusterLocker(t, dial(t, &redis.Options{Addr: addr}))
	x := acquire(t, locks, "held", core.WithRenewEvery(ttl/10))
	promoted := dial(t, &redis.Options{Addr: next.Addr()})
	eventually(t, "the replica has heard of it", func() bool { return promoted.Exists(t.Context(), "holdfast:held").Val() == 1 })
	old.Kill()
	_, err := locker(t, dial(t, &redis.Options{Addr: addr})).TryAcquire(t.Context(), "held") // HAProxy has nobody to ask
	is(t, err, core.ErrUnavailable)
	t.Log(err)
	ok(t, promoted.ReplicaOf(t.Context(), "no", "one").Err())
	renewed(t, x)
	_, err = other.TryAcquire(t.Context(), "held")
	is(t, err, core.ErrHeld)
	ok(t, x.Release(t.Context()))
	handsOver(t, locks, other)
}

// twemproxy knows no HELLO, and hangs up without a word.
func TestTwemproxyIsRefusedWithAReason(t *testing.T) {
	t.Parallel()
	path := servers.Find(t, "nutcracker", "nutcracker")
	addr, stats := unused(t), unused(t)
	_, port, err := net.SplitHostPort(stats)
	ok(t, err)
	daemon(t, addr, path, fmt.Sprintf(`main:
  listen: %s
  redis: true
  hash: fnv1a_64
  distribution: ketama
  servers:
  - %s:1
`, addr, servers.Redis(t).Addr()), "-c", "conf", "-a", "127.0.0.1", "-s", port)
	// A client that says HELLO four times may not be through with that when the attempt's time is over.
	told(t, locker(t, dial(t, &redis.Options{Addr: addr, MaxRetries: -1})), "twemproxy")
}
