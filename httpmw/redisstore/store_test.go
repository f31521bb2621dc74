package redisstore_test

import (
	"context"
	"sync"
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

// sent notes the names of commands.
type sent struct{ names sync.Map }

func (s *sent) DialHook(next redis.DialHook) redis.DialHook { return next }
func (s *sent) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		s.names.Store(cmd.Name(), nil)
		return next(ctx, cmd)
	}
}
func (s *sent) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func TestAnAnswerIsNotReadFromAReplica(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: servers.Redis(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	s := new(sent)
	rdb.AddHook(s)
	storetest.Run(t, redisstore.New(rdb))
	commands, err := rdb.Command(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	for name := range s.names.Range {
		if info := commands[name.(string)]; info == nil || info.ReadOnly {
			t.Errorf("%s is for replicas, too", name)
		}
	}
}
