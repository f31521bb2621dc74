package redlock_test

import (
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// What the tests of all backends ask in the same way.
var (
	ok         = backendtest.OK
	acquire    = backendtest.Acquire
	is         = backendtest.Is
	isHeld     = backendtest.IsHeld
	eventually = backendtest.Eventually
)

func TestMain(m *testing.M) {
	logging.Disable() // go-redis prints every dial that a dead server refuses
	backendtest.AtOnce()
	goleak.VerifyTestMain(m)
}

// dial returns a client that ends with the test.
func dial(t testing.TB, addr string, opts ...func(*redis.Options)) *redis.Client {
	t.Helper()
	o := &redis.Options{Addr: addr, MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}}
	for _, opt := range opts {
		opt(o)
	}
	rdb := redis.NewClient(o)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
