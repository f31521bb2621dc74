package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// noScripts is a user whose permissions the docs give for [redislock.WithoutScripts].
var noScripts = []any{
	"acl", "setuser", "locks", "on", ">secret", "resetkeys", "~holdfast:*", "~{holdfast:*", "resetchannels", "-@all",
	"+watch", "+unwatch", "+multi", "+exec", "+get", "+set", "+del", "+pexpire", "+pttl", "+time", "+hello", "+ping",
}

func allowWithoutScripts(t *testing.T, addr string) {
	t.Helper()
	ok(t, dial(t, &redis.Options{Addr: addr}).Do(t.Context(), noScripts...).Err())
}

func dialWithoutScripts(t *testing.T, addr string) *redis.Client {
	t.Helper()
	allowWithoutScripts(t, addr)
	rdb := dial(t, &redis.Options{Addr: addr, Username: "locks", Password: "secret"})
	if err := rdb.Eval(t.Context(), "return 1", nil).Err(); !redis.HasErrorPrefix(err, "NOPERM") {
		t.Fatalf("a script: %v", err)
	}
	return rdb
}

// unlined hides that a Store could have a line: without scripts it has none.
type unlined struct{ driver.Driver }

func TestConformanceWithoutScripts(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	var cases atomic.Int64
	drivertest.Run(t, drivertest.Harness{
		Backend: "Redis without scripts", Server: "Redis " + server.Version(),
		Open: func(t *testing.T) drivertest.Service {
			return onRedisWithoutScripts(t, server.Addr(), fmt.Sprintf("holdfast:%d:", cases.Add(1)))
		},
		OpenServers: func(t *testing.T) (drivertest.Service, drivertest.Servers) {
			own := servers.Redis(t, "--appendonly", "yes", "--appendfsync", "always") // this one remembers
			s := onRedisWithoutScripts(t, own.Addr(), "holdfast:")
			return s, drivertest.Servers{Kill: own.Kill, Restart: func() {
				own.Restart()
				allowWithoutScripts(t, own.Addr())
			}}
		},
	})
}

func onRedisWithoutScripts(t *testing.T, addr, prefix string) drivertest.Service {
	t.Helper()
	s := service(t, &redis.Options{Addr: addr}, prefix)
	store := func(addr string) driver.Driver {
		rdb := dial(t, &redis.Options{Addr: addr, Username: "locks", Password: "secret"})
		return unlined{redislock.New(rdb, redislock.WithPrefix(prefix), redislock.WithoutScripts())}
	}
	allowWithoutScripts(t, addr)
	s.Driver = func() driver.Driver { return store(addr) }
	s.Through = func() (driver.Driver, []*faultproxy.Proxy) {
		p := faultproxy.New(t, addr)
		return store(p.Addr()), []*faultproxy.Proxy{p}
	}
	s.Holder = "unscripted " + addr + " " + prefix
	return s
}

func TestWithoutScriptsWaitersAndProcessesTakeTurns(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	var inside, turns atomic.Int32
	var last atomic.Uint64
	var wg sync.WaitGroup
	for range 2 {
		locks := locker(t, dialWithoutScripts(t, server.Addr()), redislock.WithoutScripts())
		for range 4 {
			wg.Go(func() {
				for range 5 {
					x, err := locks.Acquire(t.Context(), "name", core.WithTTL(10*time.Second))
					if err != nil {
						t.Error(err)
						return
					}
					if inside.Add(1) != 1 || last.Swap(x.Fence()) >= x.Fence() {
						t.Error("two holders, or fences that do not grow")
					}
					turns.Add(1)
					inside.Add(-1)
					if err := x.Release(t.Context()); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	wg.Wait()
	if turns.Load() != 40 {
		t.Errorf("%d turns", turns.Load())
	}
}

func TestWithoutScriptsALeaseIsRenewedLostAndCompleted(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	admin := dial(t, &redis.Options{Addr: server.Addr()})
	locks := locker(t, dialWithoutScripts(t, server.Addr()), redislock.WithoutScripts())
	x := acquire(t, locks, "name", core.WithDedup(time.Hour))
	lasts(t, x)
	ok(t, x.Complete(t.Context()))
	_, err := locks.TryAcquire(t.Context(), "name", core.WithDedup(time.Hour))
	is(t, err, core.ErrDone)
	y := acquire(t, locks, "name")
	ok(t, admin.Set(t.Context(), "holdfast:name", "somebody else's", 0).Err())
	<-y.Context().Done()
	is(t, y.Err(), core.ErrLost)
	_, err = locks.TryAcquire(t.Context(), "name")
	is(t, err, core.ErrHeld)
}

// The fence counter is watched too: who is between its look and its transaction while another
// one is granted the name and gives it back must not be granted the same fence.
func TestWithoutScriptsAGrantBetweenLookAndTransactionIsSeen(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	admin := dial(t, &redis.Options{Addr: server.Addr()})
	ahead := time.Now().Add(time.Hour).UnixMicro()
	ok(t, admin.Set(t.Context(), "{holdfast:name}:v1:fence", ahead, time.Hour).Err())
	var once sync.Once
	rdb := dial(t, &redis.Options{Addr: server.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return between{conn, func() {
			once.Do(func() { ok(t, admin.Set(t.Context(), "{holdfast:name}:v1:fence", ahead+1, time.Hour).Err()) })
		}}, err
	}})
	x := acquire(t, locker(t, rdb, redislock.WithoutScripts()), "name")
	if x.Fence() != uint64(ahead+2) {
		t.Errorf("fence %d, not %d", x.Fence(), ahead+2)
	}
	ok(t, x.Release(t.Context()))
}

// So is the lock's key: whoever is granted the name between look and transaction keeps it, also
// a client that mints no fence.
func TestWithoutScriptsALockThatIsTakenBetweenLookAndTransactionIsRespected(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	admin := dial(t, &redis.Options{Addr: server.Addr()})
	var once sync.Once
	rdb := dial(t, &redis.Options{Addr: server.Addr(), Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return between{conn, func() {
			once.Do(func() { ok(t, admin.Set(t.Context(), "holdfast:name", "somebody else's", 0).Err()) })
		}}, err
	}})
	_, err := locker(t, rdb, redislock.WithoutScripts()).TryAcquire(t.Context(), "name")
	is(t, err, core.ErrHeld)
	if value := admin.Get(t.Context(), "holdfast:name").Val(); value != "somebody else's" {
		t.Error("the lock of another was overwritten")
	}
}

// between is a connection that does something before a transaction is sent.
type between struct {
	net.Conn
	then func()
}

func (b between) Write(p []byte) (int, error) {
	if bytes.Contains(p, []byte("multi")) {
		b.then()
	}
	return b.Conn.Write(p)
}

func TestWithoutScriptsWhatIsMissingIsSaid(t *testing.T) {
	t.Parallel()
	store := redislock.New(dial(t, &redis.Options{Addr: "127.0.0.1:1"}), redislock.WithoutScripts())
	if can := store.Capabilities(); can.Block || !can.Fence || !can.Dedup {
		t.Errorf("%+v", can)
	}
	if err := store.Wait(t.Context(), driver.Claim{}); !errors.Is(err, errors.ErrUnsupported) || !errors.Is(err, driver.ErrNotSent) {
		t.Errorf("a line: %v", err)
	}
}
