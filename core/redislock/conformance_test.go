package redislock_test

import (
	"context"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/redislock"
)

var shared servers.SharedRedis

func TestConformanceOnMiniredis(t *testing.T) {
	t.Parallel()
	drivertest.RunInBubble(t, func(t testing.TB) drivertest.Config {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		return service(t, &redis.Options{
			Addr:   "127.0.0.1:0", // of no meaning, but go-redis would look up the name localhost, which spoils other bubbles
			Dialer: func(context.Context, string, string) (net.Conn, error) { return buffered(m.Dial()) },
		}, "holdfast:")
	})
}

func TestConformanceOnRedis(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t) // for all cases; each has a prefix of its own
	allow(t, server.Addr(), forClaims, withLooks)
	each(t, func(t testing.TB, prefix string) drivertest.Config {
		s := asLocks(t, server.Addr(), prefix)
		s.Names = 10_000
		s.Own = func() drivertest.Config {
			own := servers.Redis(t)
			s := onRedis(t, own.Addr(), "holdfast:")
			s.Kill, s.Restart, s.Forgetful = own.Kill, own.Restart, true
			return s
		}
		return s
	})
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server := servers.Redis(t)
	each(t, func(t testing.TB, prefix string) drivertest.Config {
		return behind(t, server.Addr(), prefix).Uneven(onRedis(t, server.Addr(), prefix))
	})
}

// each runs the suite at a server that all cases share. Each has a prefix of its own.
func each(t *testing.T, open func(t testing.TB, prefix string) drivertest.Config) {
	t.Helper()
	var cases atomic.Int64
	drivertest.Run(t, func(t testing.TB) drivertest.Config { return open(t, fmt.Sprintf("holdfast:%d:", cases.Add(1))) })
}

// onRedis is a service at a real server.
func onRedis(t testing.TB, addr, prefix string) drivertest.Config {
	t.Helper()
	s := service(t, &redis.Options{Addr: addr}, prefix)
	s.Through = behind(t, addr, prefix).Through
	return s
}

// behind makes processes that reach a server through a proxy.
func behind(t testing.TB, addr, prefix string) backendtest.Process {
	return func() (driver.Driver, []*faultproxy.Proxy) {
		p := faultproxy.New(t, addr)
		return redislock.New(dial(t, &redis.Options{Addr: p.Addr()}), redislock.WithPrefix(prefix)), []*faultproxy.Proxy{p}
	}
}

// service is what all have.
func service(t testing.TB, o *redis.Options, prefix string) drivertest.Config {
	t.Helper()
	s := seen(t, dial(t, o), prefix)
	s.Driver = func() driver.Driver { return redislock.New(dial(t, o), redislock.WithPrefix(prefix)) }
	s.Unreachable = func() driver.Driver {
		return redislock.New(dial(t, &redis.Options{Addr: o.Addr, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:1")
		}}))
	}
	return s
}

// seen is what other software sees at a server, and does there.
func seen(t testing.TB, other redis.UniversalClient, prefix string) drivertest.Config {
	messages := &messages{}
	return drivertest.Config{
		Names:     100, // each takes long where Go interprets its scripts, or over a slow network: TestConformanceOnRedis has many
		Overwrite: func(name string) { ok(t, other.Set(t.Context(), prefix+name, "bm90IGhvbGRmYXN0J3M=", 0).Err()) },
		Delete:    func(name string) { ok(t, other.Del(t.Context(), prefix+name).Err()) },
		Leftovers: func() (left []string) {
			for _, key := range other.Keys(t.Context(), "*"+prefix+"*").Val() {
				if !strings.HasSuffix(key, ":v1:fence") {
					left = append(left, key)
				}
			}
			return left
		},
		Messages: func(string) (func() []drivertest.Message, func(drivertest.Message)) {
			return messages.open(t, other, prefix)
		},
	}
}

// messages hears all that is told on channels with a prefix, and tells it again.
type messages struct {
	mu  sync.Mutex // protects all
	all []drivertest.Message
}

func (m *messages) open(t testing.TB, rdb redis.UniversalClient, prefix string) (func() []drivertest.Message, func(drivertest.Message)) {
	t.Helper()
	sub := rdb.PSubscribe(t.Context(), "*"+prefix+"*")
	_, err := sub.Receive(t.Context())
	ok(t, err)
	go func() {
		for {
			msg, err := sub.ReceiveMessage(context.Background())
			if err != nil {
				return // closed
			}
			m.mu.Lock()
			m.all = append(m.all, drivertest.Message{To: msg.Channel, Text: msg.Payload})
			m.mu.Unlock()
		}
	}()
	t.Cleanup(func() { _ = sub.Close() })
	return func() []drivertest.Message {
			m.mu.Lock()
			defer m.mu.Unlock()
			return slices.Clone(m.all)
		}, func(msg drivertest.Message) {
			if err := rdb.Publish(context.Background(), msg.To, msg.Text).Err(); err != nil {
				t.Error(err)
			}
		}
}

// dial returns a client that ends with the test.
func dial(t testing.TB, o *redis.Options) *redis.Client {
	t.Helper()
	own := *o
	own.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	rdb := redis.NewClient(&own)
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}
