package redislock_test

import (
	"context"
	"fmt"
	"net"
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

func TestConformanceOnRedis(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t) // for all cases; each has a prefix of its own
	allow(t, server.Addr(), forClaims, withLooks)
	var cases atomic.Int64
	drivertest.Run(t, drivertest.Harness{
		Open: func(t *testing.T) drivertest.Service {
			prefix := fmt.Sprintf("holdfast:%d:", cases.Add(1))
			s := asLocks(t, server.Addr(), prefix)
			s.Holder = "server " + server.Addr() + " " + prefix
			return s
		},
		OpenServers: func(t *testing.T) (drivertest.Service, drivertest.Servers) {
			own := servers.Redis(t)
			return onRedis(t, own.Addr(), "holdfast:"), drivertest.Servers{Kill: own.Kill, Restart: own.Restart, Forgetful: true}
		},
	})
}

func TestConformanceOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server := servers.Redis(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(t *testing.T) drivertest.Service { return onRedis(t, server.Addr(), t.Name()+":") },
	}.Uneven(6))
}

// onRedis is a service at a real server.
func onRedis(t *testing.T, addr, prefix string) drivertest.Service {
	t.Helper()
	s := service(t, &redis.Options{Addr: addr}, prefix)
	s.Through = func() (driver.Driver, []*faultproxy.Proxy) {
		p := faultproxy.New(t, addr)
		return redislock.New(dial(t, &redis.Options{Addr: p.Addr()}), redislock.WithPrefix(prefix)), []*faultproxy.Proxy{p}
	}
	s.Holder = "server " + addr + " " + prefix
	return s
}

func TestConformanceOnMiniredis(t *testing.T) {
	t.Parallel()
	drivertest.Run(t, drivertest.Harness{Virtual: true, Open: func(t *testing.T) drivertest.Service {
		m := miniredis.NewMiniRedis()
		m.ClockTTL(true)
		return service(t, &redis.Options{
			Addr:   "127.0.0.1:0", // of no meaning, but go-redis would look up the name localhost, which spoils other bubbles
			Dialer: func(context.Context, string, string) (net.Conn, error) { return buffered(m.Dial()) },
		}, "holdfast:")
	}})
}

func service(t *testing.T, o *redis.Options, prefix string) drivertest.Service {
	t.Helper()
	other := dial(t, o)
	return drivertest.Service{
		Driver: func() driver.Driver { return redislock.New(dial(t, o), redislock.WithPrefix(prefix)) },
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
		Unreachable: func() driver.Driver {
			return redislock.New(dial(t, &redis.Options{Addr: o.Addr, Dialer: func(ctx context.Context, _, _ string) (net.Conn, error) {
				return new(net.Dialer).DialContext(ctx, "tcp", "127.0.0.1:1")
			}}))
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
