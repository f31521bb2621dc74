package taskmw_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// hold takes a name as another process would, until release is called or the test ends.
func hold(tb testing.TB, d driver.Driver, name string) (release func()) {
	tb.Helper()
	return holdAs(tb, d, name, "someone")
}

func holdAs(tb testing.TB, d driver.Driver, name, holder string) (release func()) {
	tb.Helper()
	return locktest.Hold(tb, locktest.Locker(tb, d), name, core.WithLabel(holder))
}

// isFree says whether nobody has the name that shipTask wants.
func isFree(tb testing.TB, d driver.Driver) bool {
	tb.Helper()
	return locktest.IsFree(tb, locktest.Locker(tb, d), "order:42")
}

// configured returns a config that went through Configure.
func configured(tb testing.TB, cfg asynq.Config) asynq.Config {
	tb.Helper()
	taskmw.Configure(&cfg)
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
	return middleware(tb, l, shipRule(action, opts...))
}

func shipRule(action taskmw.Action, opts ...core.Option) taskmw.Rule {
	return taskmw.WithType("order:ship", "order:{order_id}", opts...).OnConflict(action)
}

// middleware logs nothing, and has a task in conflict tried again at once.
func middleware(tb testing.TB, l *core.Locker, opts ...taskmw.Option) asynq.MiddlewareFunc {
	tb.Helper()
	quick := []taskmw.Option{taskmw.WithLogger(slog.New(slog.DiscardHandler)), taskmw.WithConflictDelay(0)}
	mw, err := taskmw.New(l, append(quick, opts...)...)
	locktest.OK(tb, err)
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
