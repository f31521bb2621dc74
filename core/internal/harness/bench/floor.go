package main

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

const (
	floorName     = "floor"
	autoFloorName = "floor auto-pipelined"
)

// floors are the least that a lock with an owner-checked release can be: SET NX and a
// compare-and-delete script, without fence, watchdog, line or trust.
func floors() []contestant {
	return []contestant{{
		name:     floorName,
		settings: "bare SET NX and EVALSHA, each on a connection of its own",
		prefix:   "floor:",
		open: func(addr string, t *traffic) (locker, error) {
			rdb := client(addr, t)
			return newFloor(rdb, rdb), nil
		},
	}, {
		name:     autoFloorName,
		settings: "the same through go-redis' AutoPipeline with its default options",
		prefix:   "floor:",
		open: func(addr string, t *traffic) (locker, error) {
			rdb := client(addr, t)
			auto, err := rdb.AutoPipeline()
			return newFloor(rdb, auto), err
		},
	}}
}

var floorRelease = redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`)

type floor struct {
	rdb    *redis.Client
	cmd    redis.Cmdable // rdb, or what batches its commands
	prefix string        // of tokens
	last   atomic.Uint64
}

func newFloor(rdb *redis.Client, cmd redis.Cmdable) *floor {
	return &floor{rdb: rdb, cmd: cmd, prefix: rand.Text()}
}

type floorLease struct {
	floor       *floor
	name, token string
}

func (f *floor) lock(ctx context.Context, name string) (lease, error) {
	x := &floorLease{f, "floor:" + name, f.prefix + strconv.FormatUint(f.last.Add(1), 36)}
	ok, err := f.cmd.SetNX(ctx, x.name, x.token, ttl).Result()
	if err == nil && !ok {
		err = errors.New("held") // a floor does not wait
	}
	return x, err
}

func (x *floorLease) Release(ctx context.Context) error {
	n, err := floorRelease.Run(ctx, x.floor.cmd, []string{x.name}, x.token).Int()
	if err == nil && n != 1 {
		err = errors.New("not the owner")
	}
	return err
}

func (f *floor) close(context.Context) error { return f.rdb.Close() }
