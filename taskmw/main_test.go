package taskmw_test

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw"
)

func TestMain(m *testing.M) {
	if spec := os.Getenv(workerEnv); spec != "" {
		work(spec)
		os.Exit(1)
	}
	goleak.VerifyTestMain(m)
}

// newLocker returns a Locker that is closed with the test.
func newLocker(tb testing.TB, d driver.Driver) *core.Locker {
	tb.Helper()
	l, err := core.New(d)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			tb.Errorf("Close: %v", err)
		}
	})
	return l
}

// spy is a memory backend that can be down, and tells what it refuses.
type spy struct {
	*memlock.Store
	down    atomic.Bool
	refused chan struct{} // of size one: the last command that found the name held
	claims  chan driver.Claim
}

func newSpy() *spy {
	return &spy{Store: memlock.New(), refused: make(chan struct{}, 1), claims: make(chan driver.Claim, 100)}
}

func (s *spy) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return s.ask(ctx, c, s.Store.Acquire)
}

func (s *spy) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return s.ask(ctx, c, s.Store.Wait)
}

func (s *spy) ask(ctx context.Context, c driver.Claim, do func(context.Context, driver.Claim) (driver.Grant, error)) (driver.Grant, error) {
	if s.down.Load() {
		return driver.Grant{}, driver.ErrNotSent
	}
	g, err := do(ctx, c)
	if err != nil {
		select {
		case s.refused <- struct{}{}:
		default:
		}
		return g, err
	}
	select {
	case s.claims <- c:
	default:
	}
	return g, nil
}

// hold takes a name as another process would, until release is called or the test ends.
func hold(tb testing.TB, d driver.Driver, name string) (release func()) {
	tb.Helper()
	return holdAs(tb, d, name, "someone")
}

func holdAs(tb testing.TB, d driver.Driver, name, holder string) (release func()) {
	tb.Helper()
	x, err := newLocker(tb, d).TryAcquire(tb.Context(), name, core.WithLabel(holder))
	if err != nil {
		tb.Fatal(err)
	}
	release = func() {
		if err := x.Release(context.Background()); err != nil {
			tb.Errorf("Release: %v", err)
		}
	}
	tb.Cleanup(release)
	return release
}

// isFree says whether nobody has the name that shipTask wants.
func isFree(tb testing.TB, d driver.Driver) bool {
	tb.Helper()
	x, err := newLocker(tb, d).TryAcquire(tb.Context(), "order:42")
	if err != nil {
		return false
	}
	if err := x.Release(tb.Context()); err != nil {
		tb.Error(err)
	}
	return true
}

// configured returns a config that went through Configure.
func configured(tb testing.TB, cfg asynq.Config) asynq.Config {
	tb.Helper()
	cfg, err := taskmw.Configured(cfg)
	if err != nil {
		tb.Fatal(err)
	}
	return cfg
}

// taskContext is a context such as a configured server gives its tasks. It ends with the
// test.
func taskContext(tb testing.TB) context.Context {
	tb.Helper()
	ctx, cancel := context.WithCancel(configured(tb, asynq.Config{}).BaseContext())
	tb.Cleanup(cancel)
	return ctx
}

// muxOf returns a mux with one handler for every task, behind the middlewares.
func muxOf(h asynq.HandlerFunc, mws ...asynq.MiddlewareFunc) *asynq.ServeMux {
	mux := asynq.NewServeMux()
	mux.Use(mws...)
	for _, pattern := range []string{"order:", "other:"} {
		mux.Handle(pattern, h)
	}
	return mux
}

func shipTask() *asynq.Task { return asynq.NewTask("order:ship", []byte(`{"order_id":42}`)) }

// ship is the middleware with one rule, for shipTask.
func ship(tb testing.TB, l *core.Locker, action taskmw.Action, opts ...core.Option) asynq.MiddlewareFunc {
	tb.Helper()
	return middleware(tb, l, taskmw.WithType("order:ship", "order:{order_id}", opts...).OnConflict(action))
}

func middleware(tb testing.TB, l *core.Locker, opts ...taskmw.Option) asynq.MiddlewareFunc {
	tb.Helper()
	mw, err := taskmw.New(l, append([]taskmw.Option{taskmw.WithLogger(slog.New(slog.DiscardHandler))}, opts...)...)
	if err != nil {
		tb.Fatal(err)
	}
	return mw
}

func succeed(context.Context, *asynq.Task) error { return nil }

// mustNotRun is the handler of tasks that are refused.
func mustNotRun(tb testing.TB) asynq.HandlerFunc {
	tb.Helper()
	return func(context.Context, *asynq.Task) error {
		tb.Error("the handler ran")
		return nil
	}
}

// exclusive notices when two runs overlap.
type exclusive struct{ inside, runs atomic.Int32 }

// enter counts a run that ends when leave is called.
func (e *exclusive) enter(tb testing.TB) (leave func()) {
	tb.Helper()
	e.runs.Add(1)
	if n := e.inside.Add(1); n != 1 {
		tb.Errorf("%d runs at once", n)
	}
	return func() { e.inside.Add(-1) }
}

// isPlain says that asynq counts err as a failure and tries again by its own rules.
func isPlain(tb testing.TB, err error) bool {
	tb.Helper()
	cfg := configured(tb, asynq.Config{RetryDelayFunc: func(int, error, *asynq.Task) time.Duration { return time.Hour }})
	return err != nil && !errors.Is(err, asynq.SkipRetry) && !errors.Is(err, asynq.RevokeTask) && !errors.Is(err, taskmw.ErrConflict) &&
		cfg.IsFailure(err) && cfg.RetryDelayFunc(0, err, shipTask()) == time.Hour
}
