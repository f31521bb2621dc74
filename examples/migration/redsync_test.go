package migration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

func redsyncOf(rdb *redis.Client, prefix string) try {
	rs := redsync.New(goredis.NewPool(rdb))
	return func(ctx context.Context, name string) (func() error, error) {
		mutex := rs.NewMutex(prefix + name)
		err := mutex.TryLockContext(ctx)
		if taken := new(redsync.ErrTaken); errors.As(err, &taken) {
			return nil, errTaken
		}
		if err != nil {
			return nil, err
		}
		return func() error {
			ok, err := mutex.UnlockContext(ctx)
			if err == nil && !ok {
				return errors.New("not unlocked")
			}
			return err
		}, nil
	}
}

// As in a fleet that has used redsync: the keys have no prefix.
func TestRedsyncAndHoldfastExcludeEachOther(t *testing.T) {
	t.Parallel()
	rdb := dial(t, servers.Redis(t).Addr())
	excludeEachOther(t, rdb, "", holdfast(lockerOf(t, rdb, "")), redsyncOf(rdb, ""))
}

func TestRedsyncDoesNotUnlockAHoldfastLease(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, share.Addr)
	locks := lockerOf(t, rdb, share.Prefix)
	mutex := redsync.New(goredis.NewPool(rdb)).NewMutex(share.Prefix+"a", redsync.WithExpiry(100*time.Millisecond))
	if err := mutex.LockContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	lease, err := locks.Acquire(t.Context(), "a") // once redsync's lock has expired
	if err != nil {
		t.Fatal(err)
	}
	if ok, err := mutex.UnlockContext(t.Context()); ok || err == nil {
		t.Errorf("Unlock: %v, %v", ok, err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

// The comparison says that a redsync mutex is nobody's to renew.
func TestARedsyncMutexRunsOutUnderTheWork(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, share.Addr)
	mutex := redsync.New(goredis.NewPool(rdb)).NewMutex(share.Prefix+"a", redsync.WithExpiry(100*time.Millisecond))
	if err := mutex.LockContext(t.Context()); err != nil {
		t.Fatal(err)
	}
	err := lockerOf(t, rdb, share.Prefix).Do(t.Context(), "a", func(context.Context) error { return nil }, core.WithWait(20*time.Second))
	if err != nil {
		t.Errorf("the mutex did not run out: %v", err)
	}
}

// A redsync unlock uses the context it is given, which the end of a request has ended.
func TestARedsyncUnlockInAnEndedContextLeavesTheKey(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, share.Addr)
	mutex := redsync.New(goredis.NewPool(rdb)).NewMutex(share.Prefix + "b")
	ctx, cancel := context.WithCancel(t.Context())
	if err := mutex.LockContext(ctx); err != nil {
		t.Fatal(err)
	}
	cancel()
	if ok, err := mutex.UnlockContext(ctx); ok || err == nil {
		t.Errorf("Unlock: %v, %v", ok, err)
	}
	if n, err := rdb.Exists(t.Context(), share.Prefix+"b").Result(); n != 1 || err != nil {
		t.Errorf("the key is gone: %v, %v", n, err)
	}
}
