package natslock

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// What the tests of all backends ask in the same way.
var (
	acquire    = backendtest.Acquire
	ok         = backendtest.OK
	is         = backendtest.Is
	eventually = backendtest.Eventually
	renewed    = backendtest.Renewed
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // buckets here are weak, as each Store says
	backendtest.AtOnce()
	goleak.VerifyTestMain(m)
}

// service has a bucket for each room.
var service = backendtest.Service{
	Start: func(t testing.TB) backendtest.Server { return servers.NATS(t) },
	Open:  func(t testing.TB, addr, bucket string) driver.Driver { return New(dial(t, addr), bucket) },
	Config: func(t testing.TB, addr, bucket string) drivertest.Config {
		made, err := dial(t, addr).CreateKeyValue(t.Context(), Bucket(bucket, 1))
		ok(t, err)
		return drivertest.Config{
			Slow: 100 * time.Millisecond, // a look may be under way as its call ends
			Overwrite: func(name string) {
				_, err := made.Put(t.Context(), name+".lock", []byte("bm90IGhvbGRmYXN0J3M="))
				ok(t, err)
			},
			Delete:      func(name string) { ok(t, made.Delete(t.Context(), name+".lock")) },
			Leftovers:   func() []string { return keys(t, made) },
			Names:       300, // each costs two writes
			Unreachable: func() driver.Driver { return New(dial(t, "127.0.0.1:1"), bucket) },
		}
	},
}

func TestConformance(t *testing.T) {
	t.Parallel()
	service.Run(t, servers.NATS(t))
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	service.RunUneven(t, servers.NATS(t))
}

// keys are those of a bucket that have a value.
func keys(t testing.TB, bucket jetstream.KeyValue) []string {
	t.Helper()
	keys, err := bucket.Keys(t.Context())
	if errors.Is(err, jetstream.ErrNoKeysFound) {
		return nil
	}
	ok(t, err)
	return keys
}

// dial returns a client that ends with the test. It goes on without a server, as programs do.
func dial(t testing.TB, addr string, options ...nats.Option) jetstream.JetStream {
	t.Helper()
	conn, err := nats.Connect("nats://"+addr, append([]nats.Option{
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}, options...)...)
	ok(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	ok(t, err)
	return js
}

// ttl of the leases that tests wait for the end of.
const ttl = 2 * time.Second

// locker returns a Locker that ends with the test.
func locker(t *testing.T, store driver.Driver) *core.Locker {
	t.Helper()
	return backendtest.Locker(t, store, time.Minute)
}
