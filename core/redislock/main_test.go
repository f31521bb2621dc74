package redislock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// What the tests of all backends ask in the same way.
var (
	acquire    = backendtest.Acquire
	ok         = backendtest.OK
	is         = backendtest.Is
	eventually = backendtest.Eventually
	renewed    = backendtest.Renewed
	recovers   = backendtest.Recovers
	grows      = backendtest.Grows
	next       = backendtest.Next
)

// ttl of the leases in tests on real servers: short enough to wait for, long enough for a
// machine that is busy with something else.
const ttl = 3 * time.Second

func TestMain(m *testing.M) {
	// go-redis looks up the name FailoverClient for each client of Sentinels. A name server that is slow to say that there
	// is none would hold up each process of a case, for longer than its leases last.
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("tests ask no name server")
	}}
	logging.Disable() // go-redis prints every dial that a dead server refuses
	backendtest.AtOnce()
	goleak.VerifyTestMain(m, goleak.IgnoreAnyFunction(dialing))
}

// dialing is where go-redis dials beside its callers, and goes on for up to its DialTimeout when they, and the client, have gone.
const dialing = "github.com/redis/go-redis/v9/internal/pool.(*ConnPool).queuedNewConn.func2"

// quiet keeps go-redis from asking for what no server here has.
var quiet = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

// dial returns a client that ends with the test.
func dial(t testing.TB, o *redis.Options) *redis.Client {
	t.Helper()
	own := *o
	own.MaintNotificationsConfig = quiet
	rdb := redis.NewClient(&own)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// locker returns a Locker that ends with the test.
func locker(t testing.TB, rdb redis.UniversalClient, opts ...redislock.Option) *core.Locker {
	t.Helper()
	return backendtest.Locker(t, redislock.New(rdb, opts...), ttl)
}

// store is a backend whose subscription ends with the test.
func store(t testing.TB, rdb redis.UniversalClient, opts ...redislock.Option) *redislock.Store {
	t.Helper()
	s := redislock.New(rdb, opts...)
	t.Cleanup(func() { ok(t, s.Close(context.WithoutCancel(t.Context()))) })
	return s
}

var shared servers.SharedRedis

// place is where a test has its locks, and a client that sees all that is there.
type place struct {
	addr, prefix string
	direct       *redis.Client
}

// part is a place at a server that other tests use, too.
func part(t testing.TB) place {
	t.Helper()
	share := shared.Use(t)
	return place{share.Addr, share.Prefix, dial(t, &redis.Options{Addr: share.Addr})}
}

// own is a place at a server of its own.
func own(t testing.TB, args ...string) (place, *servers.Server) {
	t.Helper()
	server := servers.Redis(t, args...)
	return placeAt(t, server), server
}

func placeAt(t testing.TB, server *servers.Server) place {
	t.Helper()
	return place{server.Addr(), "holdfast:", dial(t, &redis.Options{Addr: server.Addr()})}
}

func (p place) key(name string) string        { return p.prefix + name }
func (p place) side(name, kind string) string { return "{" + p.prefix + name + "}:v1:" + kind }

// store is one more process there, as another program would have it, and locker is, too.
func (p place) store(t testing.TB, opts ...redislock.Option) *redislock.Store {
	t.Helper()
	return store(t, dial(t, &redis.Options{Addr: p.addr}), append(opts, redislock.WithPrefix(p.prefix))...)
}

func (p place) locker(t testing.TB, opts ...redislock.Option) *core.Locker {
	t.Helper()
	return locker(t, dial(t, &redis.Options{Addr: p.addr}), append(opts, redislock.WithPrefix(p.prefix))...)
}

func (p place) do(t testing.TB, args ...any) {
	t.Helper()
	ok(t, p.direct.Do(t.Context(), args...).Err())
}

// value is what the lock's key has.
func (p place) value(t testing.TB, name string) string {
	t.Helper()
	return p.direct.Get(t.Context(), p.key(name)).Val()
}

// inLine is how many are in the queue for "name".
func (p place) inLine(t testing.TB) int64 {
	t.Helper()
	return p.direct.ZCard(t.Context(), p.side("name", "line")).Val()
}

func (p place) lineUp(t testing.TB, n int64) {
	t.Helper()
	eventually(t, "they stand in line", func() bool { return p.inLine(t) == n })
}

// waits has a call in line for "name", whose lease comes out of the channel.
func (p place) waits(t testing.TB, locks *core.Locker) <-chan *core.Lease {
	t.Helper()
	got := make(chan *core.Lease, 1)
	go func() {
		x, err := locks.Acquire(t.Context(), "name")
		check(t, err)
		got <- x
	}()
	p.lineUp(t, 1)
	return got
}

// world is a server of its own, a Locker behind a proxy, and one with a good connection.
type world struct {
	place
	server       *servers.Server
	proxy        *faultproxy.Proxy
	through      *redis.Client
	locks, other *core.Locker
}

func newWorld(t *testing.T, args ...string) *world {
	t.Helper()
	return worldOf(t, servers.Redis(t, args...))
}

func worldOf(t *testing.T, server *servers.Server) *world {
	t.Helper()
	w := &world{place: placeAt(t, server), server: server, proxy: faultproxy.New(t, server.Addr())}
	w.through = dial(t, &redis.Options{Addr: w.proxy.Addr()})
	w.locks, w.other = locker(t, w.through), locker(t, w.direct)
	return w
}

// lasts checks that the lease is renewed again and again.
func lasts(t *testing.T, x *core.Lease) {
	t.Helper()
	for range 2 {
		renewed(t, x)
	}
}

// disturb does something every so often until the test ends, or the returned function is called.
func disturb(t testing.TB, every time.Duration, do func(ctx context.Context)) (end func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			do(ctx)
			select {
			case <-ctx.Done():
			case <-time.After(every): // without a pause, it takes a whole processor from other tests
			}
		}
	})
	end = func() { cancel(); wg.Wait() }
	t.Cleanup(end)
	return end
}

// crowd has many goroutines do the same, so that their commands are merged.
func crowd(n int, f func(i int)) {
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for i := range n {
		wg.Go(func() {
			<-begin
			f(i)
		})
	}
	close(begin)
	wg.Wait()
}

// claim is one for a minute, by a token that is as long as core's.
func claim(name, token string, opts ...func(*driver.Claim)) driver.Claim {
	return with(driver.Claim{Name: name, Token: (token + strings.Repeat("-", 22))[:22], TTL: time.Minute}, opts...)
}

func with(c driver.Claim, opts ...func(*driver.Claim)) driver.Claim {
	for _, set := range opts {
		set(&c)
	}
	return c
}

func alone(*driver.Claim)       {}
func reader(c *driver.Claim)    { c.Limit = driver.Readers }
func permit(c *driver.Claim)    { c.Limit = 2 }
func labelled(c *driver.Claim)  { c.Label = "who" }
func dedups(c *driver.Claim)    { c.Scope, c.Dedup = "pay", time.Hour }
func kept(c *driver.Claim)      { c.Keep = time.Minute }
func handedOff(c *driver.Claim) { c.Handoff = strings.Repeat("k", driver.HandoffWidth) }
func unrenewed(c *driver.Claim) { c.TTL = 0 }

// kinds are those of claims.
var kinds = map[string]func(*driver.Claim){"exclusive": alone, "shared": reader, "limited": permit}

func grant(t testing.TB, d driver.Driver, c driver.Claim) driver.Grant {
	t.Helper()
	g, err := d.Acquire(t.Context(), c)
	ok(t, err)
	return g
}

func renew(t testing.TB, d driver.Driver, c driver.Claim) error {
	t.Helper()
	return d.Renew(t.Context(), []driver.Claim{c})[0]
}

func release(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	ok(t, d.Release(t.Context(), c))
}

// look has a claim stand in line behind whoever holds its name, until it was refused once.
func look(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c.Heard = func(*driver.Held) { cancel() }
	_, err := d.Wait(ctx, c)
	_ = another(t, err)
}

// list collects what Leases says, by name.
func list(t testing.TB, i inspect.Inspector, prefix string) map[string]inspect.LeaseInfo {
	t.Helper()
	infos := make(map[string]inspect.LeaseInfo)
	for info, err := range i.Leases(t.Context(), prefix) {
		ok(t, err)
		infos[info.Name] = info
	}
	return infos
}

func known(t testing.TB, i inspect.Inspector, name string) inspect.LeaseInfo {
	t.Helper()
	info, err := i.Inspect(t.Context(), name)
	ok(t, err)
	return info
}

// refused fails the test unless a server has refused to do what was asked.
func refused(t testing.TB, err error) {
	t.Helper()
	if m := driver.Explain(err); m.Answered() {
		t.Errorf("%v: no error of the server's", err)
	}
}

// another fails the test unless err says that a name has another holder.
func another(t testing.TB, err error) *driver.Held {
	t.Helper()
	m := driver.Explain(err)
	if m.Held == nil {
		t.Errorf("%v; want a *driver.Held", err)
		return &driver.Held{}
	}
	return m.Held
}
