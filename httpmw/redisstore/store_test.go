package redisstore_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/httpmw/redisstore"
	"github.com/holdfast-go/holdfast/internal/storetest"
)

func TestStoreOnRedis(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: servers.Redis(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	storetest.Run(t, redisstore.New(rdb))
	storetest.Run(t, redisstore.New(rdb, redisstore.WithPrefix("mine:")))
	sent, err := rdb.Info(t.Context(), "commandstats").Result()
	if err != nil || !strings.Contains(sent, "cmdstat_getex:") || strings.Contains(sent, "cmdstat_get:") {
		t.Errorf("a client sends GET to a replica, too: %v %s", err, sent)
	}
	keys, err := rdb.Keys(t.Context(), "*").Result()
	if err != nil || len(keys) == 0 {
		t.Fatal(err)
	}
	for _, key := range keys {
		if ttl, err := rdb.PTTL(t.Context(), key).Result(); err != nil || ttl <= 0 {
			t.Errorf("%s has no TTL: %s, %v", key, ttl, err)
		}
	}
}
