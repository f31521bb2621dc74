package migration_test

import (
	"context"
	"errors"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

var shared servers.SharedRedis

// errTaken is what a try of theirs returns if somebody else has the lock.
var errTaken = errors.New("taken")

// try takes a lock once. What it returns frees it.
type try func(ctx context.Context, name string) (free func(context.Context) error, err error)

func dial(t *testing.T, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr:                     addr,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

var ok = locktest.OK

// lockerOf returns a Locker on the keys of the library to migrate from. It is closed with the test.
func lockerOf(t *testing.T, rdb *redis.Client, prefix string) *core.Locker {
	t.Helper()
	return locktest.Locker(t, redislock.New(rdb, redislock.WithPrefix(prefix)))
}

// holdfast is a try of ours.
func holdfast(locks *core.Locker) try {
	return func(ctx context.Context, name string) (func(context.Context) error, error) {
		lease, err := locks.TryAcquire(ctx, name)
		if errors.Is(err, core.ErrHeld) {
			return nil, errTaken
		}
		return lease.Release, err
	}
}

// both is two tries, one inside the other.
func both(first, second try) try {
	return func(ctx context.Context, name string) (func(context.Context) error, error) {
		free, err := first(ctx, name)
		if err != nil {
			return nil, err
		}
		freeSecond, err := second(ctx, name)
		if err != nil {
			return nil, errors.Join(err, free(ctx))
		}
		return func(ctx context.Context) error { return errors.Join(freeSecond(ctx), free(ctx)) }, nil
	}
}

func TestTheyAndHoldfastExcludeEachOther(t *testing.T) {
	t.Parallel()
	for library, sides := range map[string]func(t *testing.T, rdb *redis.Client, prefix string) (ours, theirs try){
		"redsync": func(t *testing.T, rdb *redis.Client, prefix string) (ours, theirs try) {
			return holdfast(lockerOf(t, rdb, prefix)), redsyncOf(rdb, prefix)
		},
		"bsm/redislock": func(t *testing.T, rdb *redis.Client, prefix string) (ours, theirs try) {
			return holdfast(lockerOf(t, rdb, prefix)), bsmOf(rdb, prefix)
		},
		// With KeyMajority 1 rueidislock's one key is KeyPrefix + ":0:" + name.
		"rueidislock of one key": func(t *testing.T, rdb *redis.Client, prefix string) (ours, theirs try) {
			theirs = rueidisOf(rueidisLocker(t, rdb.Options().Addr, prefix+"rueidislock", 1))
			return holdfast(lockerOf(t, rdb, prefix+"rueidislock:0:")), theirs
		},
		// With KeyMajority 2, the default, two of three keys make a lock. Who holds the first two of them leaves no majority, and nobody
		// who has a majority leaves him both.
		"rueidislock of three keys": func(t *testing.T, rdb *redis.Client, prefix string) (ours, theirs try) {
			theirs = rueidisOf(rueidisLocker(t, rdb.Options().Addr, prefix+"rueidislock", 2))
			first, second := lockerOf(t, rdb, prefix+"rueidislock:0:"), lockerOf(t, rdb, prefix+"rueidislock:1:")
			return both(holdfast(first), holdfast(second)), theirs
		},
	} {
		t.Run(library, func(t *testing.T) {
			t.Parallel()
			share := shared.Use(t)
			if library == "redsync" { // as in a fleet that has used it: the keys have no prefix
				share = servers.Share{Addr: servers.Redis(t).Addr()}
			}
			rdb := dial(t, share.Addr)
			ours, theirs := sides(t, rdb, share.Prefix)
			excludeEachOther(t, ours, theirs)
		})
	}
}

// excludeEachOther proves it in both directions.
func excludeEachOther(t *testing.T, ours, theirs try) {
	t.Helper()
	for what, two := range map[string][2]try{"theirs-held-ours-refused": {theirs, ours}, "ours-held-theirs-refused": {ours, theirs}} {
		free, err := two[0](t.Context(), what)
		ok(t, err)
		if _, err := two[1](t.Context(), what); !errors.Is(err, errTaken) {
			t.Errorf("%s: the second one: %v, want %v", what, err, errTaken)
		}
		ok(t, free(t.Context()))
		free, err = two[1](t.Context(), what)
		ok(t, err)
		ok(t, free(t.Context()))
	}
}
