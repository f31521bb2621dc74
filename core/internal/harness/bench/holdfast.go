package main

import (
	"context"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

const holdfastName = "Holdfast"

func holdfasts() []contestant {
	return []contestant{{
		name:     beforeName,
		settings: "the same at another commit",
		prefix:   "holdfast:",
	}, {
		name:       holdfastName,
		settings:   "no options: fence, watchdog and line on",
		prefix:     "holdfast:",
		renewEvery: ttl / 3,
		open: func(addr string, t *traffic) (locker, error) {
			rdb := client(addr, t)
			locks, err := core.New(redislock.New(rdb))
			return &holdfast{rdb, locks}, err
		},
	}}
}

type holdfast struct {
	rdb   redis.UniversalClient
	locks *core.Locker
}

func (h *holdfast) lock(ctx context.Context, name string) (lease, error) {
	return h.locks.Acquire(ctx, name)
}

func (h *holdfast) close(ctx context.Context) error {
	defer func() { _ = h.rdb.Close() }()
	return h.locks.Close(ctx)
}
