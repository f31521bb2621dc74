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
)

var shared servers.SharedRedis

// errTaken is what a try of theirs returns if somebody else has the lock.
var errTaken = errors.New("taken")

// try takes a lock once. What it returns frees it.
type try func(ctx context.Context, name string) (free func() error, err error)

func dial(t *testing.T, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{
		Addr:                     addr,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

// lockerOf returns a Locker on the keys of the library to migrate from.
func lockerOf(t *testing.T, rdb *redis.Client, prefix string) *core.Locker {
	t.Helper()
	return lockerWith(t, rdb, prefix)
}

// holdfast is a try of ours.
func holdfast(locks *core.Locker) try {
	return func(ctx context.Context, name string) (func() error, error) {
		lease, err := locks.TryAcquire(ctx, name)
		if errors.Is(err, core.ErrHeld) {
			return nil, errTaken
		}
		if err != nil {
			return nil, err
		}
		return func() error { return lease.Release(ctx) }, nil
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
		if err := free(); err != nil {
			t.Fatalf("%s: freeing: %v", what, err)
		}
		free, err = two[1](t.Context(), name)
		if err != nil {
			t.Fatalf("%s: after it was freed: %v", what, err)
		}
		if err := free(); err != nil {
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
		return free()
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
func obtain(ctx context.Context, lock try, name string) (func() error, error) {
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

// lockerWith is lockerOf with options for New.
func lockerWith(t *testing.T, rdb *redis.Client, prefix string, opts ...core.NewOption) *core.Locker {
	t.Helper()
	locks, err := core.New(redislock.New(rdb, redislock.WithPrefix(prefix)), opts...)
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, locks)
	return locks
}

// sharedQueue is a server of a test's own: asynq has no prefix for its keys.
func sharedQueue(t *testing.T) string {
	t.Helper()
	return servers.Redis(t).Addr()
}

// closeAfter closes locks with the test. A test that has failed may have leases left.
func closeAfter(t *testing.T, locks *core.Locker) {
	t.Helper()
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
		defer cancel()
		if err := locks.Close(ctx); err != nil {
			t.Error(err)
		}
	})
}
