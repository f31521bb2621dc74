package oldadapter_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/oldadapter"
	"github.com/holdfast-go/holdfast/core/internal/onredis"
	"github.com/holdfast-go/holdfast/core/redislock"
)

func onRedis(rdb *redis.Client, prefix string) driver.Driver {
	return oldadapter.New(redislock.New(rdb, redislock.WithPrefix(prefix)))
}

func TestConformanceOfOldRedislockOnMiniredis(t *testing.T) {
	t.Parallel()
	drivertest.RunInBubble(t, func(t testing.TB) drivertest.Config {
		s := onredis.Miniredis(t, onRedis)
		s.Slow = time.Millisecond // it asks before it stands in the queue
		return s
	})
}

func TestConformanceOfOldRedislockOnRedis(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	var cases atomic.Int64
	drivertest.Run(t, func(t testing.TB) drivertest.Config {
		s := onredis.Redis(t, onRedis, server.Addr(), fmt.Sprintf("holdfast:%d:", cases.Add(1)))
		s.Slow = 100 * time.Millisecond
		return s
	})
}
