package redislock_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// What the tests of all backends ask in the same way.
var (
	acquire    = backendtest.Acquire
	ok         = backendtest.OK
	is         = backendtest.Is
	eventually = backendtest.Eventually
	within     = backendtest.Within
	renewed    = backendtest.Renewed
)

func TestMain(m *testing.M) {
	// go-redis looks up the name FailoverClient for each client of Sentinels. A name server that is slow to say that there
	// is none would hold up each process of a case, for longer than its leases last.
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("tests ask no name server")
	}}
	logging.Disable() // go-redis prints every dial that a dead server refuses
	backendtest.AtOnce()
	goleak.VerifyTestMain(m)
}

// ttl of the leases in tests on real servers: short enough to wait for, long enough for a
// machine that is busy with something else.
const ttl = 3 * time.Second

// locker returns a Locker that ends with the test.
func locker(t *testing.T, rdb redis.UniversalClient, opts ...redislock.Option) *core.Locker {
	t.Helper()
	return lockerOn(t, redislock.New(rdb, opts...))
}

// operator is a Locker that ends with the test, and what its Store shows.
type operator struct {
	*core.Locker
	inspect.Inspector
	inspect.MarkerInspector
}

func operates(t *testing.T, rdb redis.UniversalClient, opts ...redislock.Option) operator {
	t.Helper()
	s := redislock.New(rdb, opts...)
	return operator{lockerOn(t, s), s, s}
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

func lockerOn(t *testing.T, d driver.Driver) *core.Locker {
	t.Helper()
	locks, err := core.New(d, core.WithTTL(ttl))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = locks.Close(ctx) // the test may have left leases
	})
	return locks
}

// lasts checks that the lease stands for several TTLs.
func lasts(t *testing.T, x *core.Lease) {
	t.Helper()
	for range 10 {
		time.Sleep(ttl / 4)
		ok(t, x.Err())
	}
}
