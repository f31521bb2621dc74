package operate_test

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
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/operate"
)

func TestMain(m *testing.M) {
	slog.SetDefault(slog.New(slog.DiscardHandler)) // what tests break on purpose is no news
	goleak.VerifyTestMain(m)
}

const ttl = 10 * time.Second

// bench is a lock service in virtual time, and processes on it.
type bench struct {
	*testing.T
	store    *memlock.Store
	operator operate.Operator // of a process that does nothing else
}

func virtual(t *testing.T, f func(b *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		b := &bench{T: t, store: memlock.New()}
		b.operator = operate.New(b.process())
		f(b)
	})
}

// process is another process. Its driver stands around another one.
func (b *bench) process(opts ...core.NewOption) *core.Locker {
	b.Helper()
	return b.on(fallback.New(b.store), opts...)
}

func (b *bench) on(d driver.Driver, opts ...core.NewOption) *core.Locker {
	b.Helper()
	locks, err := core.New(d, opts...)
	backendtest.OK(b, err)
	b.Cleanup(func() { // the test may have left leases
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = locks.Close(ctx)
	})
	return locks
}

func (b *bench) acquire(l *core.Locker, name string, opts ...core.Option) *core.Lease {
	b.Helper()
	x, err := l.TryAcquire(b.Context(), name, opts...)
	backendtest.OK(b, err)
	return x
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

// call is a call of Acquire that the test waits for.
func (b *bench) call(l *core.Locker, opts ...core.Option) <-chan *core.Lease {
	got := make(chan *core.Lease, 1)
	go func() {
		x, err := l.Acquire(b.Context(), "name", opts...)
		backendtest.OK(b, err)
		got <- x
	}()
	synctest.Wait()
	return got
}

// handles are those of all who have the name, as Inspect shows them.
func (b *bench) handles() (all []string) {
	b.Helper()
	info, err := b.operator.Inspect(b.Context(), "name")
	backendtest.OK(b, err)
	for _, h := range info.Holders {
		all = append(all, h.Handle)
	}
	if info.Handle != "" {
		all = append(all, info.Handle)
	}
	return all
}

// force takes the name from the holder with this handle, and fails the test unless it is freed as wanted.
func (b *bench) force(handle string, want bool) {
	b.Helper()
	if freed, err := b.operator.ForceRelease(b.Context(), "name", handle); freed != want || err != nil {
		b.Errorf("freed %t, %v", freed, err)
	}
}

// others fails the test unless only others hold the name.
func (b *bench) others(handle string) {
	b.Helper()
	freed, err := b.operator.ForceRelease(b.Context(), "name", handle)
	if held, ok := errors.AsType[*core.HeldError](err); freed || !ok || held.Name != "name" {
		b.Errorf("freed %t, %v", freed, err)
	}
}

// taken waits for as long as a renewal may take to tell, and fails the test unless x was taken, or was not.
func (b *bench) taken(x *core.Lease, want bool) {
	b.Helper()
	time.Sleep(ttl / 3)
	synctest.Wait()
	if x.Err() == nil {
		_ = core.Confirm(x.Context()) // it may not be renewed by itself
	}
	lost, ok := errors.AsType[*core.LostError](x.Err())
	if want != (ok && lost.Reason == core.ReasonTaken) || !want && x.Err() != nil {
		b.Errorf("%v: taken: %v", x.Err(), want)
	}
}
