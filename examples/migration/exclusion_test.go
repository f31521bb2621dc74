package migration_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/taskmw/cronmw"
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

// lockerOf returns a Locker on the keys of the library to migrate from. It is closed with the test.
func lockerOf(t *testing.T, rdb *redis.Client, prefix string) *core.Locker {
	t.Helper()
	locks, err := core.New(redislock.New(rdb, redislock.WithPrefix(prefix)))
	ok(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second) // a test that has failed may have leases left
		defer cancel()
		if err := locks.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return locks
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
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
		// gocron-redis-lock, gocron's own locker on Redis, is a redsync mutex named like the job.
		"gocron": func(t *testing.T, rdb *redis.Client, prefix string) (ours, theirs try) {
			locks, err := cronmw.NewLocker(lockerOf(t, rdb, prefix), "{job}") // their prefix is ""
			ok(t, err)
			return func(ctx context.Context, job string) (func(context.Context) error, error) {
				lock, err := locks.Lock(ctx, job)
				if errors.Is(err, core.ErrHeld) {
					return nil, errTaken
				}
				if err != nil {
					return nil, err
				}
				return lock.Unlock, nil
			}, redsyncOf(rdb, prefix)
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
			excludeEachOther(t, rdb, share.Prefix, ours, theirs)
		})
	}
}

// excludeEachOther proves it in both directions, and under load.
func excludeEachOther(t *testing.T, rdb *redis.Client, prefix string, ours, theirs try) {
	t.Helper()
	for what, two := range map[string][2]try{"theirs held ours refused": {theirs, ours}, "ours held theirs refused": {ours, theirs}} {
		name := strings.ReplaceAll(what, " ", "-")
		free, err := two[0](t.Context(), name)
		if err != nil {
			t.Fatalf("%s: the first one: %v", what, err)
		}
		if _, err := two[1](t.Context(), name); !errors.Is(err, errTaken) {
			t.Errorf("%s: the second one: %v, want %v", what, err, errTaken)
		}
		if err := free(t.Context()); err != nil {
			t.Fatalf("%s: freeing: %v", what, err)
		}
		free, err = two[1](t.Context(), name)
		if err != nil {
			t.Fatalf("%s: after it was freed: %v", what, err)
		}
		if err := free(t.Context()); err != nil {
			t.Fatalf("%s: freeing: %v", what, err)
		}
	}
	hammer(t, rdb, prefix, ours, theirs)
}

// hammer has four goroutines of each side add one to a counter that is read, and then written.
func hammer(t *testing.T, rdb *redis.Client, prefix string, ours, theirs try) {
	t.Helper()
	const each, rounds = 4, 25
	var inside atomic.Int32
	counter := prefix + "counter"
	add := func(lock try) error {
		free, err := obtain(t.Context(), lock, "hammer")
		if err != nil {
			return err
		}
		if n := inside.Add(1); n != 1 {
			t.Errorf("%d holders at once", n)
		}
		n, err := rdb.Get(t.Context(), counter).Int()
		if err != nil && !errors.Is(err, redis.Nil) {
			return err
		}
		if err := rdb.Set(t.Context(), counter, n+1, 0).Err(); err != nil {
			return err
		}
		inside.Add(-1)
		return free(t.Context())
	}
	var all sync.WaitGroup
	for _, lock := range []try{ours, theirs} {
		for range each {
			all.Go(func() {
				for range rounds {
					if err := add(lock); err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	all.Wait()
	if n, err := rdb.Get(t.Context(), counter).Int(); n != 2*each*rounds || err != nil {
		t.Errorf("the counter stands at %d, %v; want %d", n, err, 2*each*rounds)
	}
}

// obtain tries until it has the lock.
func obtain(ctx context.Context, lock try, name string) (func(context.Context) error, error) {
	for {
		free, err := lock(ctx, name)
		if !errors.Is(err, errTaken) {
			return free, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(time.Millisecond):
		}
	}
}
