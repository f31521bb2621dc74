// Package backendtest has what the tests of every backend ask in the same way. The suite that they all run is
// core/drivertest.
package backendtest

import (
	"context"
	"errors"
	"flag"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// AtOnce has four tests of a package run at a time, on however few processors: they mostly wait. The flag -parallel goes
// before it. TestMain calls it.
func AtOnce() {
	flag.Parse() //nolint:revive // deep-exit: TestMain is the main function of tests
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", "4") // it exists
	}
}

// Slow leaves a test to "make test-all" where tests are asked to be short, as by "make test": one of a topology, of a clock
// that steps, or of the suite in a further configuration.
func Slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("it is slow: make test-all runs it")
	}
}

// OK fails the test at once if there is an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Is fails the test unless err matches want, and no other error of core.
func Is(t testing.TB, err, want error) {
	t.Helper()
	if !errors.Is(err, want) {
		t.Errorf("%v, and not %v", err, want)
		return
	}
	for _, sentinel := range []error{core.ErrHeld, core.ErrUnavailable, core.ErrLost, core.ErrDuplicate, core.ErrInvalid, core.ErrClosed} {
		if errors.Is(err, sentinel) != (sentinel == want) { //nolint:errorlint // the sentinels themselves
			t.Errorf("%v, and not %v", err, want)
			return
		}
	}
}

// Eventually waits for cond, for what a busy machine may need.
func Eventually(t testing.TB, what string, cond func() bool) {
	t.Helper()
	Within(t, 30*time.Second, what, cond)
}

// Within is Eventually for what may take as long as limit.
func Within(t testing.TB, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	for began := time.Now(); !cond(); time.Sleep(10 * time.Millisecond) {
		if time.Since(began) > limit {
			t.Fatalf("never came true: %s", what)
		}
	}
}

// Locker returns a Locker that ends with the test.
func Locker(t testing.TB, d driver.Driver, ttl time.Duration) *core.Locker {
	t.Helper()
	locks, err := core.New(d, core.WithTTL(ttl))
	OK(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = locks.Close(ctx) // the test may have left leases
	})
	return locks
}

// Acquire returns a lease of a name.
func Acquire(t testing.TB, locks *core.Locker, name string, opts ...core.Option) *core.Lease {
	t.Helper()
	x, err := locks.Acquire(t.Context(), name, opts...)
	OK(t, err)
	return x
}

// Renewed waits for the server to renew the lease once more, from now on.
func Renewed(t testing.TB, x *core.Lease) {
	t.Helper()
	before := x.ValidUntil()
	Eventually(t, "a renewal", func() bool { return x.Err() != nil || x.ValidUntil().After(before) })
	OK(t, x.Err())
}

// IsHeld fails the test unless err says that somebody else has the name.
func IsHeld(t testing.TB, err error) {
	t.Helper()
	if driver.Explain(err).Held == nil {
		t.Errorf("%v; want a *driver.Held", err)
	}
}

// Next has one more call wait for a name, which it then releases. What it returns has that call's error.
func Next(t testing.TB, locks *core.Locker, name string, opts ...core.Option) <-chan error {
	t.Helper()
	got := make(chan error, 1)
	go func() {
		x, err := locks.Acquire(t.Context(), name, opts...)
		if err == nil {
			err = x.Release(t.Context())
		}
		got <- err
	}()
	return got
}

// InVain has a claim stand in the queue until ctx ends.
func InVain(ctx context.Context, t testing.TB, d driver.Driver, c driver.Claim) {
	t.Helper()
	_, err := d.Wait(ctx, c)
	IsHeld(t, err)
}

// RefusedByNew fails the test unless core.New refuses each of some backends, with words that say why. Spaces at the end of the
// words do not count.
func RefusedByNew(t testing.TB, backends map[string]driver.Driver) {
	t.Helper()
	for want, d := range backends {
		_, err := core.New(d)
		Is(t, err, core.ErrInvalid)
		if err == nil || !strings.Contains(err.Error(), strings.TrimSpace(want)) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
}

// Tells fails the test unless an acquire and Ready both say what is wrong, and what to do, without the password "hunter2".
func Tells(t testing.TB, locks *core.Locker, want string) {
	t.Helper()
	_, err := locks.TryAcquire(t.Context(), "name")
	for call, err := range map[string]error{"acquire": err, "ready": locks.Ready(t.Context())} {
		Is(t, err, core.ErrUnavailable)
		if err == nil || !strings.Contains(err.Error(), want) || driver.Reason(err) == "" || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", call, err)
		}
	}
}
