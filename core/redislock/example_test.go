package redislock_test

import (
	"context"
	"fmt"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

func Example() {
	server, err := miniredis.Run() // stands for your Redis
	if err != nil {
		panic(err)
	}
	defer server.Close()
	rdb := redis.NewClient(&redis.Options{
		Addr:                     server.Addr(),
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}, // which miniredis has not
	})
	defer rdb.Close()

	ctx := context.Background()
	locks, err := core.New(redislock.New(rdb))
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx) // before the client

	err = locks.Do(ctx, "order:42", func(ctx context.Context) error {
		fmt.Println("held:", rdb.Exists(ctx, "holdfast:order:42").Val() == 1)
		return nil
	})
	fmt.Println(err, rdb.Exists(ctx, "holdfast:order:42").Val() == 0)
	// Output:
	// held: true
	// <nil> true
}
