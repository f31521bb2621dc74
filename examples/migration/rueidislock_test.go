package migration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/holdfast-go/holdfast/core"
)

func rueidisLocker(t *testing.T, addr, prefix string, majority int32) rueidislock.Locker {
	t.Helper()
	locker, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{InitAddress: []string{addr}},
		KeyPrefix:    prefix,
		KeyMajority:  majority,
		TryNextAfter: 5 * time.Second, // the machine may be busy; the default is 20 ms
		KeyValidity:  20 * time.Second,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(locker.Close)
	return locker
}

func rueidisOf(locker rueidislock.Locker) try {
	return func(ctx context.Context, name string) (func() error, error) {
		_, cancel, err := locker.TryWithContext(ctx, name)
		if errors.Is(err, rueidislock.ErrNotLocked) {
			return nil, errTaken
		}
		if err != nil {
			return nil, err
		}
		return func() error { cancel(); return nil }, nil
	}
}

// With KeyMajority 1 rueidislock's one key is KeyPrefix + ":0:" + name.
func TestRueidislockOfOneKeyAndHoldfastExcludeEachOther(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, share.Addr)
	theirs := rueidisOf(rueidisLocker(t, share.Addr, share.Prefix+"rueidislock", 1))
	locks := lockerOf(t, rdb, share.Prefix+"rueidislock:0:")
	excludeEachOther(t, rdb, share.Prefix, holdfast(locks), theirs)
}

// With KeyMajority 2, the default, two of three keys make a lock. Who holds the first two of
// them leaves no majority, and nobody who has a majority leaves him both.
func TestRueidislockOfThreeKeysAndTwoLeasesExcludeEachOther(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, share.Addr)
	theirs := rueidisOf(rueidisLocker(t, share.Addr, share.Prefix+"rueidislock", 2))
	first := holdfast(lockerOf(t, rdb, share.Prefix+"rueidislock:0:"))
	second := holdfast(lockerOf(t, rdb, share.Prefix+"rueidislock:1:"))
	both := func(ctx context.Context, name string) (func() error, error) {
		free, err := first(ctx, name)
		if err != nil {
			return nil, err
		}
		freeSecond, err := second(ctx, name)
		if err != nil {
			return nil, errors.Join(err, free())
		}
		return func() error { return errors.Join(freeSecond(), free()) }, nil
	}
	excludeEachOther(t, rdb, share.Prefix, both, theirs)
}

func TestAWaitingRueidislockGetsTheNameThatHoldfastReleases(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	theirs := rueidisLocker(t, share.Addr, share.Prefix+"rueidislock", 1)
	lease, err := lockerOf(t, dial(t, share.Addr), share.Prefix+"rueidislock:0:").Acquire(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	got := make(chan error, 1)
	go func() {
		_, cancel, err := theirs.WithContext(t.Context(), "a")
		if err == nil {
			cancel()
		}
		got <- err
	}()
	if err := lease.Release(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// ForceWithContext overwrites the key, and so takes the name from Holdfast as from itself.
func TestAForcedRueidislockIsALossThatHoldfastNotices(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	theirs := rueidisLocker(t, share.Addr, share.Prefix+"rueidislock", 1)
	locks := lockerOf(t, dial(t, share.Addr), share.Prefix+"rueidislock:0:")
	lease, err := locks.Acquire(t.Context(), "a", core.WithRenewEvery(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	_, cancel, err := theirs.ForceWithContext(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	defer cancel()
	<-lease.Context().Done()
	if err := lease.Release(t.Context()); !errors.Is(err, core.ErrLost) {
		t.Errorf("%v, want a loss", err)
	}
}
