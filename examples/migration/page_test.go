package migration_test

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// What follows is the code of docs/comparison.md; examples/readme_test.go compares them.

var _ = []any{newStore, newDo, bothRueidislock}

func pay(ctx context.Context) error { return ctx.Err() }

func newStore(rdb *redis.Client) (*core.Locker, error) {
	locks, err := core.New(redislock.New(rdb, redislock.WithPrefix("lock:"))) // the old code locked "lock:order:42"
	return locks, err
}

func newDo(ctx context.Context, locks *core.Locker) error {
	return locks.Do(ctx, "order:42", pay)
}

func bothRueidislock(ctx context.Context, first, second *core.Locker) error {
	// first with redislock.WithPrefix("rueidislock:0:"), second with redislock.WithPrefix("rueidislock:1:")
	return first.Do(ctx, "my_lock", func(ctx context.Context) error {
		return second.Do(ctx, "my_lock", pay)
	})
}
