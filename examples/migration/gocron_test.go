package migration_test

import (
	"context"
	"errors"
	"testing"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw/cronmw"
)

// gocron-redis-lock, gocron's own locker on Redis, is a redsync mutex named like the job.
func TestGocronsRedisLockerAndHoldfastExcludeEachOther(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, share.Addr)
	theirs := redsyncOf(rdb, share.Prefix)
	ours, err := cronmw.NewLocker(lockerOf(t, rdb, share.Prefix), "{job}") // their prefix is ""
	if err != nil {
		t.Fatal(err)
	}
	excludeEachOther(t, rdb, share.Prefix, func(ctx context.Context, job string) (func() error, error) {
		lock, err := ours.Lock(ctx, job)
		if errors.Is(err, core.ErrHeld) {
			return nil, errTaken
		}
		if err != nil {
			return nil, err
		}
		return func() error { return lock.Unlock(ctx) }, nil
	}, theirs)
}

func memory(t *testing.T) *core.Locker {
	t.Helper()
	locks, err := core.New(memlock.New())
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, locks)
	return locks
}
