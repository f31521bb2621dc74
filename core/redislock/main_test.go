package redislock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ttl of the leases in tests on real servers: short enough to wait for, long enough for a
// machine that is busy with something else.
const ttl = 2 * time.Second

// locker returns a Locker that ends with the test.
func locker(t *testing.T, rdb redis.UniversalClient, opts ...redislock.Option) *core.Locker {
	t.Helper()
	return lockerOn(t, redislock.New(rdb, opts...))
}

func lockerOn(t *testing.T, d driver.Driver) *core.Locker {
	t.Helper()
	locks, err := core.New(d, core.WithTTL(ttl))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = locks.Close(ctx) // the test may have left leases
	})
	return locks
}

func acquire(t *testing.T, locks *core.Locker, name string, opts ...core.Option) *core.Lease {
	t.Helper()
	x, err := locks.Acquire(t.Context(), name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

func ok(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// is fails the test unless err matches want and none of the others.
func is(t *testing.T, err, want error) {
	t.Helper()
	for _, sentinel := range []error{core.ErrHeld, core.ErrUnavailable, core.ErrLost, core.ErrDuplicate, core.ErrInvalid, core.ErrClosed} {
		if errors.Is(err, sentinel) != (sentinel == want) { //nolint:errorlint // the sentinels themselves
			t.Errorf("%v, and not %v", err, want)
			return
		}
	}
}

// eventually waits for cond, for what a busy machine may need.
func eventually(t *testing.T, what string, cond func() bool) {
	t.Helper()
	for range 600 {
		if cond() {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatalf("never came true: %s", what)
}

// lasts checks that the lease stands for several TTLs.
func lasts(t *testing.T, x *core.Lease) {
	t.Helper()
	for range 10 {
		time.Sleep(ttl / 4)
		ok(t, x.Err())
	}
}

// renewed waits for the server to renew the lease once more, from now on.
func renewed(t *testing.T, x *core.Lease) {
	t.Helper()
	before := x.ValidUntil()
	eventually(t, "a renewal", func() bool { return x.Err() != nil || x.ValidUntil().After(before) })
	ok(t, x.Err())
}
