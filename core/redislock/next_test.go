package redislock_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	contract "github.com/holdfast-go/holdfast/core/internal/contract"
	drivertest "github.com/holdfast-go/holdfast/core/internal/contract/contracttest"
	"github.com/holdfast-go/holdfast/core/internal/contract/oldservice"
	"github.com/holdfast-go/holdfast/core/internal/contract/onredis"
	"github.com/holdfast-go/holdfast/core/redislock"
)

func onContract(rdb *redis.Client, prefix string) contract.Driver {
	return redislock.New(rdb, redislock.WithPrefix(prefix)).Next()
}

func TestNextConformsOnMiniredis(t *testing.T) {
	t.Parallel()
	drivertest.RunInBubble(t, func(t testing.TB) drivertest.Config { return onredis.Miniredis(t, onContract) })
}

func TestNextConformsOnRedis(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	var cases atomic.Int64
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		return onredis.Redis(t, onContract, server.Addr(), fmt.Sprintf("holdfast:%d:", cases.Add(1)))
	})
}

func TestNextConformsOverUnevenConnections(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server := servers.Redis(t)
	var cases atomic.Int64
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		return onredis.Uneven(t, onContract, server.Addr(), fmt.Sprintf("holdfast:%d:", cases.Add(1)))
	})
}

// native is the Store of an old service on the new contract.
func native(d driver.Driver) contract.Driver { return d.(*redislock.Store).Next() }

func TestNextConformsWithTheLeastPermissions(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server := servers.Redis(t)
	allow(t, server.Addr(), forClaims)
	var cases atomic.Int64
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		return oldservice.As(asLocks(t.(*testing.T), server.Addr(), fmt.Sprintf("holdfast:%d:", cases.Add(1))), native)
	})
}

func TestNextConformsWithAReplica(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	server := servers.Redis(t, "--repl-diskless-sync-delay", "0")
	follow(t, server)
	var cases atomic.Int64
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		prefix := fmt.Sprintf("holdfast:%d:", cases.Add(1))
		s := onRedis(t.(*testing.T), server.Addr(), prefix)
		s.Driver = func() driver.Driver {
			return redislock.New(dial(t, &redis.Options{Addr: server.Addr()}), redislock.WithPrefix(prefix), redislock.WithReplicas(1, time.Second))
		}
		s.Through = nil
		return oldservice.As(s, native)
	})
}

func TestNextConformsOnCluster(t *testing.T) {
	t.Parallel()
	c := servers.Cluster(t)
	for _, n := range c.Nodes { // permissions are not replicated
		allow(t, n.Addr(), forClaims, withSlots)
	}
	var cases atomic.Int64
	drivertest.Run(t, func(tb testing.TB) drivertest.Config {
		t, prefix := tb.(*testing.T), fmt.Sprintf("holdfast:%d:", cases.Add(1))
		s := onCluster(t, c, prefix)
		s.Driver = func() driver.Driver { return redislock.New(clusterAsLocks(t, c), redislock.WithPrefix(prefix)) }
		return oldservice.As(s, native)
	})
}
