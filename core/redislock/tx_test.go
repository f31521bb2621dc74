package redislock_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// noScripts is a user whose permissions the docs give for [redislock.NewTx].
var noScripts = []any{
	"acl", "setuser", "locks", "on", ">secret", "resetkeys", "~holdfast:*", "~{holdfast:*", "resetchannels", "-@all",
	"+watch", "+unwatch", "+multi", "+exec", "+get", "+set", "+del", "+pexpire", "+pttl", "+time", "+hello", "+ping",
}

// withTxLooks adds what they give for looking.
var withTxLooks = []any{"acl", "setuser", "locks", "+mget", "+scan"}

func allowWithoutScripts(t testing.TB, addr string) {
	t.Helper()
	allow(t, addr, noScripts, withTxLooks)
}

func dialWithoutScripts(t testing.TB, addr string) *redis.Client {
	t.Helper()
	allowWithoutScripts(t, addr)
	rdb := dial(t, &redis.Options{Addr: addr, Username: "locks", Password: "secret"})
	if err := rdb.Eval(t.Context(), "return 1", nil).Err(); !redis.HasErrorPrefix(err, "NOPERM") {
		t.Fatalf("a script: %v", err)
	}
	return rdb
}

func TestConformanceWithoutScripts(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	each(t, func(t testing.TB, prefix string) drivertest.Config {
		s := onRedisWithoutScripts(t, server.Addr(), prefix)
		s.Own = func() drivertest.Config {
			args := []string{"--appendonly", "yes", "--appendfsync", "always", "--user"} // this one remembers, and knows its user as it starts
			for _, word := range slices.Concat(noScripts[2:], withTxLooks[3:]) {
				args = append(args, fmt.Sprint(word))
			}
			own := servers.Redis(t, args...)
			s := onRedisWithoutScripts(t, own.Addr(), "holdfast:")
			s.Kill, s.Restart = own.Kill, own.Restart
			return s
		}
		return s
	})
}

func TestConformanceWithoutScriptsOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server := servers.Redis(t)
	each(t, func(t testing.TB, prefix string) drivertest.Config {
		return behindWithoutScripts(t, server.Addr(), prefix).Uneven(onRedisWithoutScripts(t, server.Addr(), prefix))
	})
}

func onRedisWithoutScripts(t testing.TB, addr, prefix string) drivertest.Config {
	t.Helper()
	allowWithoutScripts(t, addr)
	s := service(t, &redis.Options{Addr: addr}, prefix)
	s.Leftovers, s.Messages = nil, nil // a fence counter for each name stays for a while, and nobody is told anything
	s.Driver = func() driver.Driver { return withoutScripts(t, addr, prefix) }
	s.Through = behindWithoutScripts(t, addr, prefix).Through
	return s
}

func withoutScripts(t testing.TB, addr, prefix string) driver.Driver {
	t.Helper()
	return redislock.NewTx(dial(t, &redis.Options{Addr: addr, Username: "locks", Password: "secret"}), redislock.WithPrefix(prefix))
}

// behindWithoutScripts makes processes that reach a server through a proxy.
func behindWithoutScripts(t testing.TB, addr, prefix string) backendtest.Process {
	return func() (driver.Driver, []*faultproxy.Proxy) {
		p := faultproxy.New(t, addr)
		return withoutScripts(t, p.Addr(), prefix), []*faultproxy.Proxy{p}
	}
}

func TestWithoutScriptsWaitersAndProcessesTakeTurns(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	var inside, turns atomic.Int32
	var last atomic.Uint64
	var wg sync.WaitGroup
	for range 2 {
		locks := lockerOn(t, redislock.NewTx(dialWithoutScripts(t, server.Addr())))
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
	locks := lockerOn(t, redislock.NewTx(dialWithoutScripts(t, server.Addr())))
	x := acquire(t, locks, "name", core.WithDedup(time.Hour))
	lasts(t, x)
	ok(t, x.Complete(t.Context()))
	_, err := locks.TryAcquire(t.Context(), "name", core.WithDedup(time.Hour))
	is(t, err, core.ErrDuplicate)
	y := acquire(t, locks, "name")
	ok(t, admin.Set(t.Context(), "holdfast:name", "somebody else's", 0).Err())
	<-y.Context().Done()
	is(t, y.Err(), core.ErrLost)
	_, err = locks.TryAcquire(t.Context(), "name")
	is(t, err, core.ErrHeld)
}

// Between MULTI and EXEC, a Redis 7 whose memory is full refuses every command, DEL and PEXPIRE too. Later versions, and
// Valkey, refuse what needs memory, as markers do: docs/backends/redis.md says so.
func TestWithoutScriptsLeasesEndWithTheirTTLWhereMemoryIsFull(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	admin := dial(t, &redis.Options{Addr: server.Addr()})
	locks := lockerOn(t, redislock.NewTx(dialWithoutScripts(t, server.Addr())))
	completed := acquire(t, locks, "completed", core.WithDedup(time.Hour))
	released, renewed := acquire(t, locks, "released"), acquire(t, locks, "renewed")
	ok(t, admin.ConfigSet(t.Context(), "maxmemory", "1").Err())
	_, refused := admin.TxPipelined(t.Context(), func(p redis.Pipeliner) error { return p.Expire(t.Context(), "none", time.Hour).Err() })

	taken := int64(2)
	full(t, completed.Complete(t.Context()))
	if err := released.Release(t.Context()); refused != nil {
		full(t, err)
	} else {
		ok(t, err)
		taken--
	}
	if n := admin.Exists(t.Context(), "holdfast:completed", "holdfast:released").Val(); n != taken {
		t.Errorf("%d of two names are taken, not %d: what the server lets through is not as the documentation says", n, taken)
	}
	if refused != nil {
		<-renewed.Context().Done()
		is(t, renewed.Err(), core.ErrLost)
	} else {
		lasts(t, renewed)
	}
	_, err := locks.TryAcquire(t.Context(), "other")
	is(t, err, core.ErrUnavailable)
	ok(t, admin.ConfigSet(t.Context(), "maxmemory", "0").Err())
	if refused == nil {
		ok(t, renewed.Release(t.Context()))
	}
	for _, name := range []string{"completed", "released", "renewed"} { // none is done, and all come free
		ok(t, acquire(t, locks, name, core.WithDedup(time.Hour)).Release(t.Context()))
	}
}

// full fails the test unless err says that the server's memory is full.
func full(t *testing.T, err error) {
	t.Helper()
	is(t, err, core.ErrUnavailable)
	const why = "OOM: the server's memory is full (maxmemory), so the transaction was refused, and the lease is as it was: " +
		"without renewals and releases its name comes free when its TTL is over"
	if !redis.IsOOMError(err) || driver.Reason(err) != why {
		t.Errorf("%v: %s", err, driver.Reason(err))
	}
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
	x := acquire(t, lockerOn(t, redislock.NewTx(rdb)), "name")
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
	_, err := lockerOn(t, redislock.NewTx(rdb)).TryAcquire(t.Context(), "name")
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

// What core finds in a driver it uses, and tells its callers that they have it.
func TestATxStoreClaimsNothingThatItCannotDo(t *testing.T) {
	t.Parallel()
	rdb := dial(t, &redis.Options{Addr: "127.0.0.1:1"}) // nobody is asked
	var store driver.Driver = redislock.NewTx(rdb)
	if can := store.Capabilities(); can.Queue || can.Hears || can.Block || can.Shared || can.Limit || can.Keep || can.Detach || !can.Fence || !can.Dedup {
		t.Errorf("%+v", can)
	}
	locks := lockerOn(t, store)
	_, err := locks.TryAcquire(t.Context(), "name", core.WithShared())
	is(t, err, core.ErrInvalid)
	_, err = core.New(redislock.NewTx(rdb, redislock.WithPrefix("{")))
	is(t, err, core.ErrInvalid)
}

func TestWithoutScriptsItTellsWhoHoldsWhat(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	store := redislock.NewTx(rdb, redislock.WithPrefix(share.Prefix))
	locks := lockerOn(t, store)
	x := hold(t, locks, "order:1", core.WithLabel("host-1 ütf"))
	for i := range 150 { // more than a page
		hold(t, locks, fmt.Sprint("many:", i))
	}
	ok(t, rdb.Set(t.Context(), share.Prefix+"order:2", "not holdfast's", 0).Err())
	ok(t, rdb.LPush(t.Context(), share.Prefix+"order:3", "a list").Err())
	infos := list(t, store, "order:")
	if len(infos) != 3 {
		t.Fatalf("%+v", infos)
	}
	if one := infos[0]; one.Label != "host-1 ütf" || one.Fence != x.Fence() || one.Foreign || one.HeldFor <= 0 || one.Remaining <= 0 {
		t.Errorf("%+v", one)
	}
	for _, foreign := range infos[1:] {
		if !foreign.Foreign || foreign.Handle != "" || foreign.Label != "" || foreign.Kind != inspect.HoldForeign {
			t.Errorf("%+v", foreign)
		}
		_ = another(t, store.Evict(t.Context(), foreign.Name, "0123456789abcdef"))
	}
	if n := len(list(t, store, "")); n != 153 {
		t.Errorf("%d names", n)
	}
	_ = another(t, store.Evict(t.Context(), "order:1", "0123456789abcdef"))
	ok(t, store.Evict(t.Context(), "order:1", infos[0].Handle))
	<-x.Context().Done()
	is(t, x.Err(), core.ErrLost)
}

// All clients of a prefix should be of one kind. If they are not, fences may fall, but a name still has one owner.
func TestScriptsAndTransactionsExcludeEachOther(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	prefix := redislock.WithPrefix(share.Prefix)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	var owners, granted atomic.Int64
	var wg sync.WaitGroup
	for i, d := range []driver.Driver{redislock.New(rdb, prefix), redislock.NewTx(rdb, prefix), redislock.New(rdb, prefix), redislock.NewTx(rdb, prefix)} {
		wg.Go(func() {
			for n := range 200 {
				c := driver.Claim{Name: "name", Token: fmt.Sprintf("%011d%011d", i, n), TTL: time.Minute}
				if _, err := d.Acquire(t.Context(), c); err != nil {
					continue
				}
				granted.Add(1)
				if n := owners.Add(1); n != 1 {
					t.Errorf("%d owners", n)
				}
				ok(t, errors.Join(d.Renew(t.Context(), []driver.Claim{c})...))
				owners.Add(-1)
				ok(t, d.Release(t.Context(), c))
			}
		})
	}
	wg.Wait()
	if granted.Load() < 100 {
		t.Errorf("%d grants", granted.Load())
	}
}
