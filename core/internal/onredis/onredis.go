// Package onredis has the services on Redis that the suite runs on: miniredis in bubbles, and real servers.
package onredis

import (
	"context"
	"math/rand/v2"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// Make makes a backend of a client and a prefix of its keys.
type Make func(rdb *redis.Client, prefix string) driver.Driver

// Miniredis returns a service of its own in a bubble.
func Miniredis(t testing.TB, open Make) drivertest.Config {
	t.Helper()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	return service(t, open, &redis.Options{
		Addr:   "127.0.0.1:0", // of no meaning, but go-redis would look up the name localhost, which spoils other bubbles
		Dialer: func(context.Context, string, string) (net.Conn, error) { return buffered(m.Dial()) },
	}, "holdfast:")
}

// Redis returns a service at a server, with a prefix of its own.
func Redis(t testing.TB, open Make, addr, prefix string) drivertest.Config {
	t.Helper()
	s := service(t, open, &redis.Options{Addr: addr}, prefix)
	s.Through = func() (driver.Driver, []drivertest.Wire) {
		p := faultproxy.New(t, addr)
		return open(dial(t, &redis.Options{Addr: p.Addr()}), prefix), []drivertest.Wire{p}
	}
	s.Own = func() drivertest.Config {
		own := servers.Redis(t)
		s := service(t, open, &redis.Options{Addr: own.Addr()}, prefix)
		s.Kill, s.Restart, s.Forgetful = own.Kill, own.Restart, true
		return s
	}
	return s
}

// Uneven returns such a service, where each connection has a delay of its own: at most 15 ms for a round trip, and
// 40 ms for some. So what a process sends on one connection can arrive after a later command on another.
func Uneven(t testing.TB, open Make, addr, prefix string) drivertest.Config {
	t.Helper()
	s := service(t, open, &redis.Options{Addr: addr}, prefix)
	var processes atomic.Uint64
	s.Through = func() (driver.Driver, []drivertest.Wire) {
		p := faultproxy.New(t, addr)
		process := processes.Add(1)
		p.DelayEach(func(n int) (toServer, toClient time.Duration) {
			random := rand.New(rand.NewPCG(process, uint64(n))) //nolint:gosec // G404, G115: to be repeated, not negative
			some := func(ms int) time.Duration { return time.Duration(random.IntN(1000*ms)) * time.Microsecond }
			if n > 1 && random.IntN(4) == 0 {
				return 25*time.Millisecond + some(15), 0
			}
			return some(8), some(7)
		})
		return open(dial(t, &redis.Options{Addr: p.Addr()}), prefix), []drivertest.Wire{p}
	}
	s.Driver = func() driver.Driver {
		d, _ := s.Through()
		return d
	}
	s.Slow = 80 * time.Millisecond
	return s
}

// service is what all have.
func service(t testing.TB, open Make, o *redis.Options, prefix string) drivertest.Config {
	t.Helper()
	other := dial(t, o)
	messages := &messages{}
	return drivertest.Config{
		Driver: func() driver.Driver {
			return open(dial(t, o), prefix)
		},
		Overwrite: func(name string) {
			if err := other.Set(t.Context(), prefix+name, "bm90IGhvbGRmYXN0J3M=", 0).Err(); err != nil {
				t.Fatal(err)
			}
		},
		Delete: func(name string) {
			if err := other.Del(t.Context(), prefix+name).Err(); err != nil {
				t.Fatal(err)
			}
		},
		Leftovers: func() (left []string) {
			for _, key := range other.Keys(t.Context(), "*"+prefix+"*").Val() {
				if !strings.HasSuffix(key, ":v1:fence") {
					left = append(left, key)
				}
			}
			return left
		},
		Unreachable: func() driver.Driver {
			return open(dial(t, &redis.Options{Addr: o.Addr, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:1")
			}}), prefix)
		},
		Messages: func(string) (func() []drivertest.Message, func(drivertest.Message)) {
			return messages.open(t, other, prefix)
		},
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

// messages hears all that is told on channels with a prefix, and tells it again.
type messages struct {
	mu  sync.Mutex // protects all
	all []drivertest.Message
}

func (m *messages) open(t testing.TB, rdb *redis.Client, prefix string) (func() []drivertest.Message, func(drivertest.Message)) {
	t.Helper()
	sub := rdb.PSubscribe(t.Context(), "*"+prefix+"*")
	if _, err := sub.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
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
