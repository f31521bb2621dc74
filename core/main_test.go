package core_test

import (
	"context"
	"errors"
	"log/slog"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // most of these tests are about faults
	goleak.VerifyTestMain(m)
}

// Times of the default configuration, as the documentation states them.
const (
	ttl    = 10 * time.Second
	period = ttl / 3
	drift  = ttl/100 + 2*time.Millisecond
	bound  = 2 * time.Second // of one attempt
)

// bench is a lock service and one process's Locker on it, in virtual time.
type bench struct {
	*testing.T
	store *memlock.Store
	link  *lab.Net
	locks *core.Locker
}

// virtual runs f in virtual time. Its Locker reaches the lock service over a link.
func virtual(t *testing.T, f func(b *bench), opts ...core.NewOption) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, store: memlock.New()}
		b.link = lab.New(b.store)
		b.locks = b.locker(b.link, opts...)
		f(b)
		b.link.Deliver()
	})
}

// other is another process with a good connection.
func (b *bench) other(opts ...core.NewOption) *core.Locker {
	b.Helper()
	return b.locker(lab.New(b.store), opts...)
}

func (b *bench) locker(d driver.Driver, opts ...core.NewOption) *core.Locker {
	b.Helper()
	locks, err := core.New(drivertest.Orderly(d, b.Errorf), opts...) // what a backend may rely on core for, in every test
	b.ok(err)
	b.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		if locks.Close(ctx) != nil { // the test has left leases: what is under way must end in the bubble
			time.Sleep(time.Minute)
		}
	})
	return locks
}

// locker is one outside of virtual time.
func locker(t testing.TB, d driver.Driver, opts ...core.NewOption) *core.Locker {
	t.Helper()
	l, err := core.New(d, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return l
}

func (b *bench) ok(err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// is fails the test unless err matches all of the targets.
func (b *bench) is(err error, targets ...error) {
	b.Helper()
	for _, target := range targets {
		if !errors.Is(err, target) {
			b.Errorf("%v does not match %v", err, target)
		}
	}
}

func (b *bench) isNot(err error, targets ...error) {
	b.Helper()
	for _, target := range targets {
		if errors.Is(err, target) {
			b.Errorf("%v matches %v", err, target)
		}
	}
}

func (b *bench) acquire(l *core.Locker, name string, opts ...core.Option) *core.Lease {
	b.Helper()
	x, err := l.TryAcquire(b.Context(), name, opts...)
	b.ok(err)
	return x
}

// lease is what a call must have got.
func (b *bench) lease(x *core.Lease, err error) *core.Lease {
	b.Helper()
	b.ok(err)
	return x
}

func (b *bench) set(x *core.LeaseSet, err error) *core.LeaseSet {
	b.Helper()
	b.ok(err)
	return x
}

// gets fails the test unless a call has got a lease, and gives that back.
func (b *bench) gets(x held, err error) {
	b.Helper()
	b.ok(err)
	b.ok(x.Release(b.Context()))
}

// in is a context that ends after d.
func (b *bench) in(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	b.Cleanup(cancel)
	return ctx
}

// begin makes a call on a goroutine, and lets it get as far as it can.
func (b *bench) begin(call func() error) <-chan error {
	result := make(chan error, 1)
	go func() { result <- call() }()
	synctest.Wait()
	return result
}

// sent fails the test unless so many calls were made over the link, of these kinds or of all.
func (b *bench) sent(n int, ops ...lab.Op) {
	b.Helper()
	if sent := b.commands(ops...); sent != n {
		b.Errorf("%d commands %v, not %d", sent, ops, n)
	}
}

// commands says how many calls were made over the link, of these kinds or of all.
func (b *bench) commands(ops ...lab.Op) (n int) {
	if len(ops) == 0 {
		ops = []lab.Op{lab.OpAcquire, lab.OpRenew, lab.OpRelease, lab.OpWait}
	}
	for _, op := range ops {
		n += b.link.Calls(op)
	}
	return n
}

// panics fails the test unless f panics with the value.
func (b *bench) panics(want any, f func()) {
	b.Helper()
	defer func() {
		b.Helper()
		if got := recover(); got != want {
			b.Errorf("it panics with %v, not %v", got, want)
		}
	}()
	f()
}

// each runs f in virtual time, as a test for each row.
func each[T any](t *testing.T, rows map[string]T, f func(b *bench, row T), opts ...core.NewOption) {
	t.Helper()
	for what, row := range rows {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) { f(b, row) }, opts...)
		})
	}
}

// taken fails the test unless l is told at once that somebody has the name.
func (b *bench) taken(l *core.Locker, name string, opts ...core.Option) {
	b.Helper()
	_, err := l.TryAcquire(b.Context(), name, opts...)
	b.is(err, core.ErrHeld)
}

// refused is what l is told at once of who has the name.
func (b *bench) refused(l *core.Locker, name string) *core.HeldError {
	b.Helper()
	return b.heldBy(second(l.TryAcquire(b.Context(), name)))
}

// heldBy is what an error says of who has the name.
func (b *bench) heldBy(err error) *core.HeldError {
	b.Helper()
	held, ok := errors.AsType[*core.HeldError](err)
	if !ok {
		b.Fatalf("%v is no HeldError", err)
	}
	return held
}

// took runs f and fails the test unless it takes exactly d, or up to spare more.
func (b *bench) took(d, spare time.Duration, f func()) {
	b.Helper()
	began := time.Now()
	f()
	if took := time.Since(began); took < d || took > d+spare {
		b.Errorf("took %s, not %s (+%s)", took, d, spare)
	}
}

// validFor fails the test unless x is trusted for so long, counted from asked.
func (b *bench) validFor(x interface{ ValidUntil() time.Time }, asked time.Time, want time.Duration) {
	b.Helper()
	if got := x.ValidUntil().Sub(asked); got != want {
		b.Errorf("valid until %s after the request, not %s", got, want)
	}
}

func (b *bench) reason(x *core.Lease, want core.Reason) {
	b.Helper()
	b.lostBecause(x.Err(), x.Name(), want)
	b.lostBecause(context.Cause(x.Context()), x.Name(), want)
}

// eventually lets time pass until cond holds.
func (b *bench) eventually(what string, cond func() bool) {
	b.Helper()
	for range 100_000 {
		synctest.Wait()
		if cond() {
			return
		}
		time.Sleep(time.Millisecond)
	}
	b.Fatalf("never came true: %s", what)
}

// hooked is a backend of which a test has some methods of its own.
type hooked struct {
	driver.Driver
	can           func(*driver.Capabilities)
	acquire, wait func(context.Context, driver.Claim) (driver.Grant, error)
	renew         func(context.Context, []driver.Claim) []error
	release       func(context.Context, driver.Claim) error
}

func (h *hooked) Capabilities() driver.Capabilities {
	can := h.Driver.Capabilities()
	if h.can != nil {
		h.can(&can)
	}
	return can
}

func (h *hooked) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if h.acquire != nil {
		return h.acquire(ctx, c)
	}
	return h.Driver.Acquire(ctx, c)
}

func (h *hooked) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	if h.wait != nil {
		return h.wait(ctx, c)
	}
	return h.Driver.Wait(ctx, c)
}

func (h *hooked) Renew(ctx context.Context, claims []driver.Claim) []error {
	if h.renew != nil {
		return h.renew(ctx, claims)
	}
	return h.Driver.Renew(ctx, claims)
}

func (h *hooked) Release(ctx context.Context, c driver.Claim) error {
	if h.release != nil {
		return h.release(ctx, c)
	}
	return h.Driver.Release(ctx, c)
}

// tired is longer than turns go on for.
const tired = 6 * time.Millisecond

// held is a lease or a set of leases.
type held interface {
	Release(ctx context.Context) error
	Context() context.Context
}
