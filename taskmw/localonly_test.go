package taskmw_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redislock"
)

func TestLocalOnlyTasksGoOnWithoutTheService(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	locks := newLocker(t, fallback.New(store))
	var mux *asynq.ServeMux
	mux = muxOf(func(ctx context.Context, task *asynq.Task) error {
		if x, _ := core.FromContext(ctx); !x.Degraded() || x.Fence() != 0 {
			t.Errorf("degraded %v, fence %d", x.Degraded(), x.Fence())
		}
		if err := mux.ProcessTask(taskContext(t), task); !errors.Is(err, core.ErrHeld) {
			t.Errorf("beside it: %v", err)
		}
		return nil
	}, shipOnly(t, locks, core.OnUnavailable(core.LocalOnly)))
	store.SetDown(true)
	if err := mux.ProcessTask(taskContext(t), shipTask()); err != nil {
		t.Error(err)
	}
}

func TestLocalOnlyTasksRunOneAtATimeWhileRedisIsDown(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	server := servers.Redis(t) // of its own, to be broken
	locks := newLocker(t, fallback.New(redislock.New(dial(t, server.Addr()))))
	var only exclusive
	degraded := make(chan bool, 100)
	work := func(ctx context.Context, _ *asynq.Task) error {
		defer only.enter(t)()
		x, _ := core.FromContext(ctx)
		degraded <- x.Degraded()
		return nil
	}
	q.serve(t, q.quick(), muxOf(work, shipOnly(t, locks, core.OnUnavailable(core.LocalOnly), core.WithWait(time.Minute))))
	run := func(n int) (local int) {
		t.Helper()
		ids := make([]string, n)
		for i := range ids {
			ids[i] = q.enqueue(t, shipTask())
		}
		for _, id := range ids {
			q.await(t, id, asynq.TaskStateCompleted)
			if <-degraded {
				local++
			}
		}
		return local
	}
	if n := run(3); n != 0 {
		t.Errorf("%d of 3 were degraded before the outage", n)
	}
	server.Kill()
	if n := run(10); n != 10 {
		t.Errorf("%d of 10 were degraded while it was down", n)
	}
	server.Restart()
	for end := time.Now().Add(20 * time.Second); run(1) != 0; { // until the first answer
		if time.Now().After(end) {
			t.Fatal("still degraded, though the server is back")
		}
	}
	if n := run(3); n != 0 {
		t.Errorf("%d of 3 were degraded after it came back", n)
	}
}
