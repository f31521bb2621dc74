package redislock_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/olddriver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// TestHolder is the process that the conformance suite freezes.
func TestHolder(t *testing.T) {
	t.Parallel()
	drivertest.Hold(t, func(holder string) driver.Driver {
		words := strings.Fields(holder)
		addrs, prefix := strings.Split(words[1], ","), redislock.WithPrefix(words[2])
		switch words[0] {
		case "cluster":
			return redislock.New(warmCluster(t, &redis.ClusterOptions{Addrs: addrs}), prefix)
		case "sentinel":
			rdb := redis.NewFailoverClient(&redis.FailoverOptions{
				MasterName: servers.MasterName, SentinelAddrs: addrs, SentinelPassword: "secret", Password: "secret",
			})
			t.Cleanup(func() { _ = rdb.Close() })
			return redislock.New(rdb, prefix)
		case "unscripted":
			rdb := dial(t, &redis.Options{Addr: addrs[0], Username: "locks", Password: "secret"})
			return redislock.NewTx(rdb, prefix)
		default:
			return redislock.New(dial(t, &redis.Options{Addr: addrs[0]}), prefix)
		}
	})
}
