package taskmw_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/taskmw"
)

func TestALockedTaskIsTheOnlyOneUntilItHasRun(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	rules := []taskmw.Option{taskmw.WithType("order:ship", "order:{order_id}", core.WithMinHold(time.Millisecond))}
	door, err := taskmw.New(newLocker(t, q.store()), rules...) // in the process that enqueues
	if err != nil {
		t.Fatal(err)
	}
	enqueue := func() (*asynq.TaskInfo, error) {
		return door.EnqueueLocked(t.Context(), q.client, shipTask(), time.Minute, asynq.Queue(q.name), asynq.Retention(time.Hour))
	}
	first, err := enqueue()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := enqueue(); !errors.Is(err, core.ErrHeld) {
		t.Errorf("while it is queued: %v, want ErrHeld", err)
	}
	running, leave := make(chan *core.Lease), make(chan struct{})
	q.serve(t, q.quick(), muxOf(func(ctx context.Context, _ *asynq.Task) error {
		x, _ := core.FromContext(ctx)
		running <- x
		<-leave
		return nil
	}, taskmw.Middleware(newLocker(t, q.store()), rules...)))
	if x := <-running; x.Name() != "order:42" {
		t.Errorf("it runs under %v", x)
	}
	if _, err := enqueue(); !errors.Is(err, core.ErrHeld) {
		t.Errorf("while it runs: %v, want ErrHeld", err)
	}
	leave <- struct{}{}
	q.await(t, first.ID, asynq.TaskStateCompleted)
	second, err := enqueue()
	for errors.Is(err, core.ErrHeld) && t.Context().Err() == nil { // until the millisecond of WithMinHold is over
		second, err = enqueue()
	}
	if err != nil {
		t.Fatalf("when it has run: %v", err)
	}
	<-running
	leave <- struct{}{}
	q.await(t, second.ID, asynq.TaskStateCompleted)
}

func TestALockedTaskThatIsNotEnqueuedFreesItsName(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	door, err := taskmw.New(newLocker(t, q.store()), taskmw.WithType("order:ship", "order:{order_id}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := door.EnqueueLocked(t.Context(), q.client, shipTask(), time.Minute, asynq.Queue(q.name), asynq.TaskID("one")); err != nil {
		t.Fatal(err)
	}
	other, err := taskmw.New(newLocker(t, q.store()), taskmw.WithType("order:ship", "other:{order_id}"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.EnqueueLocked(t.Context(), q.client, shipTask(), time.Minute, asynq.Queue(q.name), asynq.TaskID("one")); !errors.Is(err, asynq.ErrTaskIDConflict) {
		t.Errorf("%v, want asynq's conflict", err)
	}
	if x, err := newLocker(t, q.store()).TryAcquire(t.Context(), "other:42"); err != nil {
		t.Errorf("the name is left taken: %v", err)
	} else if err := x.Release(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestEnqueueLockedRefusesWhatCannotWork(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	door, err := taskmw.New(newLocker(t, q.store()),
		taskmw.WithType("order:several", core.Keys("a:{order_id}", "b:{order_id}")),
		taskmw.WithType("order:coalesce", "order:{order_id}", taskmw.OnConflict(taskmw.Coalesce)),
		taskmw.WithType("order:id", "order:{asynq:id}"),
		taskmw.WithType("order:ship", "order:{order_id}"))
	if err != nil {
		t.Fatal(err)
	}
	for says, task := range map[string]*asynq.Task{
		"several keys": asynq.NewTask("order:several", shipTask().Payload()),
		"Coalesce":     asynq.NewTask("order:coalesce", shipTask().Payload()),
		"{asynq:id}":   asynq.NewTask("order:id", shipTask().Payload()),
		"no rule":      asynq.NewTask("other", shipTask().Payload()),
		"{order_id}":   asynq.NewTask("order:ship", []byte(`{}`)),
		"options":      asynq.NewTask("order:ship", shipTask().Payload(), asynq.MaxRetry(1)),
		"nil":          nil,
	} {
		_, err := door.EnqueueLocked(t.Context(), q.client, task, time.Minute, asynq.Queue(q.name))
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want ErrInvalid that says %q", err, says)
		}
	}
}
