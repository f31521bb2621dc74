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

func bsmOf(rdb *redis.Client, prefix string, ttl time.Duration) try {
	return func(ctx context.Context, name string) (func(context.Context) error, error) {
		lock, err := bsm.Obtain(ctx, rdb, prefix+name, ttl, nil)
		if errors.Is(err, bsm.ErrNotObtained) {
			return nil, errTaken
		}
		return lock.Release, err
	}
}

func redsyncOf(rdb *redis.Client, prefix string, ttl time.Duration) try {
	rs := redsync.New(goredis.NewPool(rdb))
	return func(ctx context.Context, name string) (func(context.Context) error, error) {
		mutex := rs.NewMutex(prefix+name, redsync.WithExpiry(ttl))
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

// unrenewed are the libraries whose locks are nobody's to renew, as the comparison says.
var unrenewed = map[string]func(rdb *redis.Client, prefix string, ttl time.Duration) try{"bsm/redislock": bsmOf, "redsync": redsyncOf}

// It does not take the lease that comes after it away, either.
func TestALockOfTheirsRunsOutUnderTheWork(t *testing.T) {
	t.Parallel()
	for library, of := range unrenewed {
		share := shared.Use(t)
		rdb := dial(t, share.Addr)
		free, err := of(rdb, share.Prefix, 100*time.Millisecond)(t.Context(), "a")
		ok(t, err)
		lease, err := lockerOf(t, rdb, share.Prefix).Acquire(t.Context(), "a", core.WithWait(20*time.Second))
		if err != nil {
			t.Fatalf("%s: the lock did not run out: %v", library, err)
		}
		if free(t.Context()) == nil {
			t.Errorf("%s: it has released what ran out", library)
		}
		if err := lease.Release(t.Context()); err != nil {
			t.Errorf("%s: %v", library, err)
		}
	}
}

// Their release uses the context it is given, which the end of a request has ended.
func TestAReleaseOfTheirsInAnEndedContextLeavesTheKey(t *testing.T) {
	t.Parallel()
	for library, of := range unrenewed {
		share := shared.Use(t)
		rdb := dial(t, share.Addr)
		ctx, cancel := context.WithCancel(t.Context())
		free, err := of(rdb, share.Prefix, time.Minute)(ctx, "a")
		ok(t, err)
		cancel()
		if free(ctx) == nil {
			t.Errorf("%s: released", library)
		}
		if n, err := rdb.Exists(t.Context(), share.Prefix+"a").Result(); n != 1 || err != nil {
			t.Errorf("%s: the key is gone: %v, %v", library, n, err)
		}
	}
}

// With a token of one's own, as a way to re-enter, a token that begins another one is taken for it.
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

func TestAWaitingRueidislockGetsTheNameThatHoldfastReleases(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	theirs := rueidisLocker(t, share.Addr, share.Prefix+"rueidislock", 1)
	lease, err := lockerOf(t, dial(t, share.Addr), share.Prefix+"rueidislock:0:").Acquire(t.Context(), "a")
	ok(t, err)
	got := make(chan error, 1)
	go func() {
		_, cancel, err := theirs.WithContext(t.Context(), "a")
		if err == nil {
			cancel()
		}
		got <- err
	}()
	ok(t, lease.Release(t.Context()))
	ok(t, <-got)
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
