package natslock_test

import (
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
	s := servers.NATS(t) // for all cases; each has a bucket of its own
	drivertest.Run(t, drivertest.Harness{
		Open: func(t *testing.T) drivertest.Service { return at(t, s.Addr()) },
		OpenServers: func(t *testing.T) (drivertest.Service, drivertest.Servers) {
			own := servers.NATS(t)
			return at(t, own.Addr()), drivertest.Servers{Kill: own.Kill, Restart: own.Restart}
		},
	})
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	s := servers.NATS(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t *testing.T) drivertest.Service { return at(t, s.Addr()) },
	}.Uneven(8))
}

var buckets atomic.Int64

// at is a service with a bucket of its own.
func at(t *testing.T, addr string) drivertest.Service {
	t.Helper()
	other := dial(t, addr)
	bucket := fmt.Sprint("locks-", buckets.Add(1))
	made, err := other.CreateKeyValue(t.Context(), natslock.Bucket(bucket, 1))
	ok(t, err)
	store := func(addr string) driver.Driver { return natslock.New(dial(t, addr), bucket) }
	return drivertest.Service{
		Driver: func() driver.Driver { return store(addr) },
		Overwrite: func(name string) {
			_, err := made.Put(t.Context(), name+".lock", []byte("bm90IGhvbGRmYXN0J3M="))
			ok(t, err)
		},
		Delete: func(name string) { ok(t, made.Delete(t.Context(), name+".lock")) },
		Through: func() (driver.Driver, []*faultproxy.Proxy) {
			p := faultproxy.New(t, addr)
			return store(p.Addr()), []*faultproxy.Proxy{p}
		},
		Unreachable: func() driver.Driver { return store("127.0.0.1:1") },
		Holder:      addr + " " + bucket,
	}
}

// TestHolder is the process that the conformance suite freezes.
func TestHolder(t *testing.T) {
	t.Parallel()
	drivertest.Hold(t, func(holder string) driver.Driver {
		addr, bucket, _ := strings.Cut(holder, " ")
		return natslock.New(dial(t, addr), bucket)
	})
}

// dial returns a client that ends with the test. It goes on without a server, as programs do.
func dial(t *testing.T, addr string, options ...nats.Option) jetstream.JetStream {
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
func locker(t *testing.T, store *natslock.Store) *core.Locker {
	t.Helper()
	return backendtest.Locker(t, store, longTTL)
}
