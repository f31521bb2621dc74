package main

import (
	"context"
	"errors"
	"time"

	"github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"
)

func newBSM(pause time.Duration) contestant {
	return contestant{
		name:     "bsm " + spaced(pause),
		settings: "bsm/redislock, LinearBackoff(" + spaced(pause) + ")",
		prefix:   "bsm:",
		peer:     true,
		open: func(addr string, t *traffic) (locker, error) {
			rdb := client(addr, t)
			return &bsm{rdb, redislock.New(rdb), pause}, nil
		},
	}
}

type bsm struct {
	rdb   *redis.Client
	locks *redislock.Client
	pause time.Duration
}

func (b *bsm) lock(ctx context.Context, name string) (lease, error) {
	opt := &redislock.Options{RetryStrategy: redislock.LinearBackoff(b.pause)}
	for {
		x, err := b.locks.Obtain(ctx, "bsm:"+name, ttl, opt)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			continue // it waits for one TTL at most
		}
		return x, err
	}
}

func (b *bsm) close(context.Context) error { return b.rdb.Close() }
