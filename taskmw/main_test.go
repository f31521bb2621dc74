package taskmw_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
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

var shared servers.SharedRedis

// queue is a test's asynq queue on a real Redis, which keeps its locks too.
type queue struct {
	name    string
	rdb     redis.UniversalClient
	prefix  string // of its locks
	client  *asynq.Client
	inspect *asynq.Inspector
}

func newQueue(t *testing.T) *queue {
	t.Helper()
	share := shared.Use(t)
	rdb := redis.NewClient(&redis.Options{
		Addr:                     share.Addr,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	t.Cleanup(func() {
		if err := rdb.Close(); err != nil {
			t.Errorf("closing the client: %v", err)
		}
	})
	return &queue{
		name:    strings.TrimSuffix(share.Prefix, ":"),
		rdb:     rdb,
		prefix:  share.Prefix,
		client:  asynq.NewClientFromRedisClient(rdb),
		inspect: asynq.NewInspectorFromRedisClient(rdb),
	}
}

// store returns a backend such as every process of a fleet makes for itself.
func (q *queue) store() *redislock.Store { return redislock.New(q.rdb, redislock.WithPrefix(q.prefix)) }

// run is one call of the middleware and what it came to.
type run struct {
	ctx context.Context
	err error
}

// recorder is a middleware that tells what each task came to, for the one that it wraps.
func recorder() (asynq.MiddlewareFunc, <-chan run) {
	runs := make(chan run, 100)
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			err := next.ProcessTask(ctx, t)
			runs <- run{ctx, err}
			return err
		})
	}, runs
}

// quick is a config with which asynq does at once what it does in seconds by default.
func (q *queue) quick() asynq.Config {
	return asynq.Config{
		Concurrency:              4,
		Queues:                   map[string]int{q.name: 1},
		TaskCheckInterval:        10 * time.Millisecond,
		DelayedTaskCheckInterval: 20 * time.Millisecond,
		RetryDelayFunc:           func(int, error, *asynq.Task) time.Duration { return 0 },
		LogLevel:                 asynq.FatalLevel,
	}
}

// serve starts a server that went through Configure. It is shut down with the test, if it
// has not been before.
func (q *queue) serve(t *testing.T, cfg asynq.Config, h asynq.Handler) *asynq.Server {
	t.Helper()
	taskmw.Configure(&cfg)
	srv := asynq.NewServerFromRedisClient(q.rdb, cfg)
	locktest.OK(t, srv.Start(h))
	t.Cleanup(srv.Shutdown)
	return srv
}

// enqueue sends a task that stays visible once it is completed.
func (q *queue) enqueue(t *testing.T, task *asynq.Task, opts ...asynq.Option) (id string) {
	t.Helper()
	opts = append(opts, asynq.Queue(q.name), asynq.Retention(time.Hour))
	info, err := q.client.EnqueueContext(t.Context(), task, opts...)
	locktest.OK(t, err)
	return info.ID
}

// await returns the task once it is in the state: asynq tells nobody, so it has to be asked.
func (q *queue) await(t *testing.T, id string, state asynq.TaskState) *asynq.TaskInfo {
	t.Helper()
	var info *asynq.TaskInfo
	var err error
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(20 * time.Second); time.Now().Before(end); <-tick.C {
		if info, err = q.inspect.GetTaskInfo(q.name, id); err == nil && info.State == state {
			return info
		}
	}
	t.Fatalf("the task is not %v: %+v, %v", state, info, err)
	return nil
}
