package main

import (
	"context"
	"errors"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
)

func newRedsync() contestant {
	return contestant{
		name:     "redsync",
		settings: "redsync on one server through its go-redis pool, WithExpiry(10 s), default pauses (50 to 250 ms)",
		prefix:   "redsync:",
		peer:     true,
		open: func(addr string, t *traffic) (locker, error) {
			rdb := client(addr, t)
			return &redsyncLocker{rdb, redsync.New(goredis.NewPool(rdb))}, nil
		},
	}
}

type redsyncLocker struct {
	rdb   *redis.Client
	locks *redsync.Redsync
}

type redsyncLease struct{ *redsync.Mutex }

func (r *redsyncLocker) lock(ctx context.Context, name string) (lease, error) {
	x := redsyncLease{r.locks.NewMutex("redsync:"+name, redsync.WithExpiry(ttl))}
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
