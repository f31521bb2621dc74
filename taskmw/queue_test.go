package taskmw_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

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
