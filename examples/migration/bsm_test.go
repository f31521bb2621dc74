package migration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
)

func bsmOf(rdb *redis.Client, prefix string) try {
	client := bsm.New(rdb)
	return func(ctx context.Context, name string) (func() error, error) {
		lock, err := client.Obtain(ctx, prefix+name, 10*time.Second, nil)
		if errors.Is(err, bsm.ErrNotObtained) {
			return nil, errTaken
		}
		if err != nil {
			return nil, err
		}
		return func() error { return lock.Release(ctx) }, nil
	}
}

func TestBsmRedislockAndHoldfastExcludeEachOther(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, share.Addr)
	excludeEachOther(t, rdb, share.Prefix, holdfast(lockerOf(t, rdb, share.Prefix)), bsmOf(rdb, share.Prefix))
}

func TestABsmLockRunsOutUnderTheWork(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, share.Addr)
	lock, err := bsm.Obtain(t.Context(), rdb, share.Prefix+"a", 100*time.Millisecond, nil)
	if err != nil {
		t.Fatal(err)
	}
	lease, err := lockerOf(t, rdb, share.Prefix).Acquire(t.Context(), "a", core.WithWait(20*time.Second))
	if err != nil {
		t.Fatalf("the lock did not run out: %v", err)
	}
	if err := lock.Release(t.Context()); !errors.Is(err, bsm.ErrLockNotHeld) {
		t.Errorf("bsm's release: %v", err)
	}
	if err := lease.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestABsmReleaseInAnEndedContextLeavesTheKey(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, share.Addr)
	ctx, cancel := context.WithCancel(t.Context())
	lock, err := bsm.Obtain(ctx, rdb, share.Prefix+"a", time.Minute, nil)
	if err != nil {
		t.Fatal(err)
	}
	cancel()
	if err := lock.Release(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Release: %v", err)
	}
	if n, err := rdb.Exists(t.Context(), share.Prefix+"a").Result(); n != 1 || err != nil {
		t.Errorf("the key is gone: %v, %v", n, err)
	}
}

// With a token of one's own, as a way to re-enter, a token that begins another one is taken
// for it.
func TestABsmTokenThatBeginsAnotherTakesItsLock(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, share.Addr)
	for _, token := range []string{"worker-10", "worker-1"} {
		if _, err := bsm.Obtain(t.Context(), rdb, share.Prefix+"a", time.Minute, &bsm.Options{Token: token}); err != nil {
			t.Errorf("%s: %v", token, err)
		}
	}
}
