package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/core/redislock"
)

func ExampleGuard() {
	ctx := context.Background()
	server, err := miniredis.Run() // stands in for Redis
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	defer rdb.Close()
	locks, err := core.New(redislock.New(rdb))
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)
	guard, err := redislock.NewGuard(rdb, 24*time.Hour)
	if err != nil {
		panic(err)
	}

	var paused uint64 // the fence of a holder that does not know that its time is over
	for _, paid := range []string{"no", "yes"} {
		err := locks.Do(ctx, "order:42", func(ctx context.Context) error {
			f, _ := core.FenceFor(ctx, "order:42")
			if paused == 0 {
				paused = f
			}
			return guard.Do(ctx, f, "HSET", "orders:42", "paid", paid).Err()
		})
		fmt.Println(paid, err)
	}

	err = guard.Do(ctx, paused, "HSET", "orders:42", "paid", "no").Err()
	fmt.Println("refused:", errors.Is(err, fence.ErrStale))
	fmt.Println("paid:", rdb.HGet(ctx, "orders:42", "paid").Val())
	// Output:
	// no <nil>
	// yes <nil>
	// refused: true
	// paid: yes
}
