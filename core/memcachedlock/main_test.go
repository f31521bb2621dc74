package memcachedlock_test

import (
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memcachedlock"
)

// What the tests of all backends ask in the same way.
var (
	ok     = backendtest.OK
	is     = backendtest.Is
	isHeld = backendtest.IsHeld
)

func TestMain(m *testing.M) {
	backendtest.AtOnce()
	goleak.VerifyTestMain(m)
}

const ttl = 2 * time.Second

// dial returns a client that ends with the test.
func dial(t testing.TB, addrs ...string) *memcache.Client {
	t.Helper()
	mc := memcache.New(addrs...)
	mc.MaxIdleConns = 16
	t.Cleanup(func() { _ = mc.Close() })
	return mc
}

// locker returns a Locker that ends with the test.
func locker(t testing.TB, mc *memcache.Client) *core.Locker {
	t.Helper()
	return backendtest.Locker(t, memcachedlock.New(mc), ttl)
}

func claim(name, token string) driver.Claim {
	return driver.Claim{Name: name, Token: token, TTL: ttl}
}

func grant(t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	_, err := d.Acquire(t.Context(), c)
	ok(t, err)
}
