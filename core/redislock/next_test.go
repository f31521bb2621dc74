package redislock_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	contract "github.com/holdfast-go/holdfast/core/internal/contract"
	drivertest "github.com/holdfast-go/holdfast/core/internal/contract/contracttest"
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
	server := servers.Redis(t)
	var cases atomic.Int64
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		return onredis.Uneven(t, onContract, server.Addr(), fmt.Sprintf("holdfast:%d:", cases.Add(1)))
	})
}
