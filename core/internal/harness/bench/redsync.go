package main

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func redsyncs() []contestant {
	return []contestant{
		newRedsync("redsync", "default pauses (50 to 250 ms)"),
		newRedsync("redsync 1 ms", "WithRetryDelay(1 ms), WithTries without end",
			redsync.WithRetryDelay(time.Millisecond), redsync.WithTries(math.MaxInt)),
	}
}

func newRedsync(name, settings string, opts ...redsync.Option) contestant {
	return contestant{
		name:     name,
		settings: "redsync on one server through its go-redis pool, WithExpiry(10 s), " + settings,
		prefix:   "redsync:",
		peer:     true,
		open: func(addr string, t *traffic) (locker, error) {
			rdb := client(addr, t)
			opts := append([]redsync.Option{redsync.WithExpiry(ttl)}, opts...)
			return &redsyncLocker{rdb, redsync.New(goredis.NewPool(rdb)), opts}, nil
		},
	}
}

type redsyncLocker struct {
	rdb   *redis.Client
	locks *redsync.Redsync
	opts  []redsync.Option
}

type redsyncLease struct{ *redsync.Mutex }

func (r *redsyncLocker) lock(ctx context.Context, name string) (lease, error) {
	x := redsyncLease{r.locks.NewMutex("redsync:"+name, r.opts...)}
	for {
		err := x.LockContext(ctx)
		if _, taken := errors.AsType[*redsync.ErrTaken](err); taken && ctx.Err() == nil {
			continue // it gives up after so many tries
		}
		return x, err
	}
}

func (x redsyncLease) Release(ctx context.Context) error {
	ok, err := x.UnlockContext(ctx)
	if err == nil && !ok {
		err = errors.New("not the owner")
	}
	return err
}

func (r *redsyncLocker) close(context.Context) error { return r.rdb.Close() }
