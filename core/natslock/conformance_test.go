package natslock_test

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/natslock"
)

// What the tests of all backends ask in the same way.
var (
	acquire    = backendtest.Acquire
	ok         = backendtest.OK
	is         = backendtest.Is
	eventually = backendtest.Eventually
	renewed    = backendtest.Renewed
)

// warnings are what the Stores of all tests have logged.
var warnings logged

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.NewTextHandler(&warnings, nil)))
	backendtest.AtOnce()
	goleak.VerifyTestMain(m)
}

// logged keeps a log.
type logged struct {
	mu   sync.Mutex // protects text
	text strings.Builder
}

func (l *logged) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

// lines are those that contain what.
func (l *logged) lines(what string) (found []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, what) {
			found = append(found, line)
		}
	}
	return found
}

func TestConformance(t *testing.T) {
	t.Parallel()
	server := servers.NATS(t) // for all cases; each has a bucket of its own
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		s := at(t, server.Addr(), newBucket(t, server.Addr()))
		s.Own = func() drivertest.Config {
			own := servers.NATS(t)
			s := at(t, own.Addr(), newBucket(t, own.Addr()))
			s.Kill, s.Restart = own.Kill, own.Restart
			return s
		}
		return s
	})
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server := servers.NATS(t)
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		bucket := newBucket(t, server.Addr())
		return process(t, server.Addr(), bucket).Uneven(at(t, server.Addr(), bucket))
	})
}

var buckets atomic.Int64

// newBucket makes a bucket, and returns its name.
func newBucket(t testing.TB, addr string) string {
	t.Helper()
	bucket := fmt.Sprint("locks-", buckets.Add(1))
	_, err := dial(t, addr).CreateKeyValue(t.Context(), natslock.Bucket(bucket, 1))
	ok(t, err)
	return bucket
}

// at is a service in a bucket.
func at(t testing.TB, addr, bucket string) drivertest.Config {
	t.Helper()
	made, err := dial(t, addr).KeyValue(t.Context(), bucket)
	ok(t, err)
	store := func(addr string) driver.Driver { return natslock.New(dial(t, addr), bucket) }
	return drivertest.Config{
		Driver: func() driver.Driver { return store(addr) },
		Slow:   100 * time.Millisecond, // a look may be under way as its call ends
		Overwrite: func(name string) {
			_, err := made.Put(t.Context(), name+".lock", []byte("bm90IGhvbGRmYXN0J3M="))
			ok(t, err)
		},
		Delete: func(name string) { ok(t, made.Delete(t.Context(), name+".lock")) },
		Leftovers: func() []string {
			keys, err := made.Keys(t.Context())
			if errors.Is(err, jetstream.ErrNoKeysFound) {
				return nil
			}
			ok(t, err)
			return keys
		},
		Names:       300, // each costs two writes
		Through:     process(t, addr, bucket).Through,
		Unreachable: func() driver.Driver { return store("127.0.0.1:1") },
	}
}

// process is one of those, over a link of its own.
func process(t testing.TB, addr, bucket string) backendtest.Process {
	t.Helper()
	return func() (driver.Driver, []*faultproxy.Proxy) {
		p := faultproxy.New(t, addr)
		return natslock.New(dial(t, p.Addr()), bucket), []*faultproxy.Proxy{p}
	}
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
	return backendtest.Locker(t, store, longTTL)
}
