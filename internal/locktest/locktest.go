// Package locktest is what the tests of all middleware need of locks.
package locktest

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// OK stops the test at an error.
func OK(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Panics fails the test unless construct panics with a text that begins so.
func Panics(t testing.TB, begins string, construct func()) {
	t.Helper()
	defer func() {
		if s, ok := recover().(string); !ok || !strings.HasPrefix(s, begins) {
			t.Errorf("panicked with %q", s)
		}
	}()
	construct()
}

// Locker returns a Locker that is closed with the test.
func Locker(t testing.TB, d driver.Driver, opts ...core.NewOption) *core.Locker {
	t.Helper()
	l, err := core.New(d, opts...)
	OK(t, err)
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Errorf("Close: %v", err)
		}
	})
	return l
}

// Memory returns a Locker on a memory of its own.
func Memory(t testing.TB) *core.Locker {
	t.Helper()
	return Locker(t, memlock.New())
}

// Two returns Lockers on one memory: this process's, as it were, and another one's.
func Two(t testing.TB) (locks, other *core.Locker) {
	t.Helper()
	store := memlock.New()
	return Locker(t, store), Locker(t, store)
}

// NameOf is the name of the lease that a context stands under, "none" without one.
func NameOf(ctx context.Context) string {
	if x, ok := core.FromContext(ctx); ok {
		return x.Name()
	}
	return "none"
}

// Hold takes a name until the test ends, or release is called.
func Hold(t testing.TB, l *core.Locker, name string, opts ...core.Option) (release func()) {
	t.Helper()
	x, err := l.TryAcquire(t.Context(), name, opts...)
	OK(t, err)
	release = func() { _ = x.Release(context.Background()) }
	t.Cleanup(release)
	return release
}

// IsFree says whether nobody has a name.
func IsFree(t testing.TB, l *core.Locker, name string) bool {
	t.Helper()
	x, err := l.TryAcquire(context.WithoutCancel(t.Context()), name)
	if err == nil {
		_ = x.Release(context.Background())
		return true
	}
	if !errors.Is(err, core.ErrHeld) {
		t.Errorf("%s: %v", name, err)
	}
	return false
}

// ComesFree waits until nobody has a name.
func ComesFree(t testing.TB, l *core.Locker, name string) {
	t.Helper()
	x, err := l.Acquire(t.Context(), name, core.WithWait(10*time.Second))
	if err != nil {
		t.Fatalf("%s does not come free: %v", name, err)
	}
	_ = x.Release(context.Background())
}

// Secret is in every error of a Backend, and must not get out.
const Secret = "redis-7.internal:6379"

var errDown = errors.Join(driver.ErrNotSent, errors.New("dial "+Secret))

// Backend is a memory that can be made to fail, and tells what it was asked.
type Backend struct {
	*memlock.Store

	Down   atomic.Bool // it does not answer
	Robbed atomic.Bool // whatever is released has another owner

	Granted chan driver.Claim // the claims, as far as there is room
	Refused chan struct{}     // of size one: a command that got nothing
}

var _ driver.Driver = (*Backend)(nil)

// NewBackend returns a Backend in which nothing is locked.
func NewBackend() *Backend {
	return &Backend{Store: memlock.New(), Granted: make(chan driver.Claim, 100), Refused: make(chan struct{}, 1)}
}

// Acquire implements driver.Driver.
func (b *Backend) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return b.ask(ctx, c, b.Store.Acquire)
}

// Wait implements driver.Driver.
func (b *Backend) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return b.ask(ctx, c, b.Store.Wait)
}

func (b *Backend) ask(ctx context.Context, c driver.Claim, do func(context.Context, driver.Claim) (driver.Grant, error)) (driver.Grant, error) {
	if b.Down.Load() {
		return driver.Grant{}, errDown
	}
	g, err := do(ctx, c)
	if err != nil {
		select {
		case b.Refused <- struct{}{}:
		default:
		}
		return g, err
	}
	select {
	case b.Granted <- c:
	default:
	}
	return g, nil
}

// Refuse has locks, on b, refuse a name with an error of core; a lock is lost at its release. The holder's label is Secret.
func Refuse(t testing.TB, b *Backend, locks *core.Locker, name string, with error) {
	t.Helper()
	switch with {
	case core.ErrHeld: //nolint:errorlint // these very errors
		Hold(t, Locker(t, b), name, core.WithLabel(Secret))
	case core.ErrDuplicate:
		done := func(context.Context) error { return nil }
		OK(t, locks.Do(t.Context(), name, done, core.WithDedup(time.Hour), core.WithDedupScope("pay")))
	case core.ErrUnavailable:
		b.Down.Store(true)
	case core.ErrDraining:
		OK(t, locks.Drain(t.Context()))
	case core.ErrClosed:
		OK(t, locks.Close(t.Context()))
	case core.ErrLost:
		b.Robbed.Store(true)
	}
}

// Release implements driver.Driver.
func (b *Backend) Release(ctx context.Context, c driver.Claim) error {
	err := b.Store.Release(ctx, c)
	if b.Robbed.Load() {
		return driver.ErrNotOwner
	}
	return err
}
