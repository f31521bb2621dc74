package migration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/holdfast-go/holdfast/core"
)

func bsmOf(rdb *redis.Client, prefix string) try {
	return func(ctx context.Context, name string) (func(context.Context) error, error) {
		lock, err := bsm.Obtain(ctx, rdb, prefix+name, 10*time.Second, nil)
		if errors.Is(err, bsm.ErrNotObtained) {
			return nil, errTaken
		}
		return lock.Release, err
	}
}

func redsyncOf(rdb *redis.Client, prefix string) try {
	rs := redsync.New(goredis.NewPool(rdb))
	return func(ctx context.Context, name string) (func(context.Context) error, error) {
		mutex := rs.NewMutex(prefix + name)
		err := mutex.TryLockContext(ctx)
		if _, taken := errors.AsType[*redsync.ErrTaken](err); taken {
			return nil, errTaken
		}
		return func(ctx context.Context) error {
			ok, err := mutex.UnlockContext(ctx)
			if err == nil && !ok {
				return errors.New("not unlocked")
			}
			return err
		}, err
	}
}

func rueidisLocker(t *testing.T, addr, prefix string, majority int32) rueidislock.Locker {
	t.Helper()
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
		KeyPrefix:    prefix,
		KeyMajority:  majority,
		TryNextAfter: 5 * time.Second, // the machine may be busy; the default is 20 ms
		KeyValidity:  20 * time.Second,
	})
	ok(t, err)
	t.Cleanup(locker.Close)
	return locker
}

func rueidisOf(locker rueidislock.Locker) try {
	return func(ctx context.Context, name string) (func(context.Context) error, error) {
		_, cancel, err := locker.TryWithContext(ctx, name)
		if errors.Is(err, rueidislock.ErrNotLocked) {
			return nil, errTaken
		}
		if err != nil {
			return nil, err
		}
		return func(context.Context) error { cancel(); return nil }, nil
	}
}

// ForceWithContext overwrites the key, and so takes the name from Holdfast as from itself.
func TestAForcedRueidislockIsALossThatHoldfastNotices(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	theirs := rueidisLocker(t, share.Addr, share.Prefix+"rueidislock", 1)
	locks := lockerOf(t, dial(t, share.Addr), share.Prefix+"rueidislock:0:")
	lease, err := locks.Acquire(t.Context(), "a", core.WithRenewEvery(50*time.Millisecond))
	ok(t, err)
	_, cancel, err := theirs.ForceWithContext(t.Context(), "a")
	ok(t, err)
	defer cancel()
	<-lease.Context().Done()
	if err := lease.Release(t.Context()); !errors.Is(err, core.ErrLost) {
		t.Errorf("%v, want a loss", err)
	}
}
