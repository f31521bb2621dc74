package taskmw_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

const keep = time.Minute

// handOver takes order:42, with a fence, and hands it over to a task.
func (q *queue) handOver(t *testing.T, l *core.Locker, task *asynq.Task, opts ...asynq.Option) (id string, fence uint64) {
	t.Helper()
	locktest.OK(t, l.Do(t.Context(), "order:42", func(ctx context.Context) error {
		x, _ := core.FromContext(ctx)
		info, err := taskmw.Enqueue(ctx, q.client, task, keep, append(opts, nil, asynq.Queue(q.name), asynq.Retention(time.Hour))...)
		locktest.OK(t, err)
		id, fence = info.ID, x.Fence()
		return nil
	}))
	return id, fence
}

func TestTheNameIsTakenFromTheRequestToTheFinishedTaskWithAnyActionAndWithoutARule(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]taskmw.Option{
		"retry": shipRule(taskmw.Retry), "skip": shipRule(taskmw.Skip), "coalesce": shipRule(taskmw.Coalesce), "none": taskmw.WithType("other:*", "x"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			locks, names := locktest.Locker(t, q.store()), make(chan string, 2)
			task := asynq.NewTaskWithHeaders("order:ship", shipTask().Payload(), map[string]string{"x": "kept"})
			id, before := q.handOver(t, locks, task, asynq.MaxRetry(0))
			if isFree(t, q.store()) {
				t.Error("free while the task waits in its queue")
			}
			q.serve(t, q.quick(), muxOf(func(ctx context.Context, task *asynq.Task) error {
				x, _ := core.FromContext(ctx)
				names <- x.Name() + " " + task.Headers()["x"]
				if x.Fence() <= before || locktest.IsFree(t, locks, "order:42") {
					t.Errorf("fence %d after %d, or free while it runs", x.Fence(), before)
				}
				return nil
			}, middleware(t, locktest.Locker(t, q.store()), r)))
			q.await(t, id, asynq.TaskStateCompleted)
			if got := <-names; got != "order:42 kept" || len(names) > 0 || len(task.Headers()) != 1 {
				t.Errorf("ran under %q; headers %v", got, task.Headers())
			}
			if !isFree(t, q.store()) {
				t.Error("not free afterwards")
			}
		})
	}
}

// One that is tried again keeps it.
func TestATaskThatIsArchivedUnrunFreesTheNameItWasHanded(t *testing.T) {
	t.Parallel()
	fails := func(context.Context, *asynq.Task) (string, error) { return "", context.DeadlineExceeded }
	for what, test := range map[string]struct {
		payload  string
		rule     taskmw.Option
		defaults []core.Option // the Locker's
		again    bool
	}{
		"another name":                 {`{"order_id":43}`, shipRule(taskmw.Retry), nil, false},
		"one of several names":         {`{"order_id":42}`, taskmw.WithType("order:ship", "order:{order_id} mail:{order_id}"), nil, false},
		"no name":                      {`{}`, shipRule(taskmw.Retry), nil, false},
		"no name, limits by default":   {`{}`, shipRule(taskmw.Retry), []core.Option{core.WithLimit(3)}, false},
		"no name, min-hold by default": {`{}`, shipRule(taskmw.Retry), []core.Option{core.WithMinHold(time.Hour)}, false},
		"a limit":                      {`{"order_id":42}`, shipRule(taskmw.Retry, core.WithLimit(3)), nil, false},
		"shared":                       {`{"order_id":42}`, shipRule(taskmw.Retry, core.WithShared()), nil, false},
		"a function that fails, once":  {`{}`, taskmw.WithTypeFunc("order:ship", fails), nil, true},
	} {
		store := memlock.New()
		locks, err := locktest.Locker(t, store).With(test.defaults...)
		locktest.OK(t, err)
		request, err := locktest.Locker(t, store).TryAcquire(t.Context(), "order:42")
		locktest.OK(t, err)
		handoff, err := request.Detach(t.Context(), keep)
		locktest.OK(t, err)
		headers := map[string]string{taskmw.HandoffHeader: handoff.Encode()}
		err = muxOf(mustNotRun(t), middleware(t, locks, test.rule)).
			ProcessTask(taskContext(t), asynq.NewTaskWithHeaders("order:ship", []byte(test.payload), headers))
		if errors.Is(err, asynq.SkipRetry) == test.again || isFree(t, store) == test.again {
			t.Errorf("%s: %v, want it tried again, and its name taken: %t", what, err, test.again)
		}
	}
}

func TestATaskThatFailsUnrunOnItsLastAttemptFreesTheNameItWasHanded(t *testing.T) {
	t.Parallel()
	for what, key := range map[string]func(context.Context, *asynq.Task) (string, error){
		"a key function that fails":             func(context.Context, *asynq.Task) (string, error) { return "", context.DeadlineExceeded },
		"a key function that panics":            func(context.Context, *asynq.Task) (string, error) { panic("of a key function") },
		"a key function that outlasts the task": func(ctx context.Context, _ *asynq.Task) (string, error) { <-ctx.Done(); return "", ctx.Err() },
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			q.serve(t, q.quick(), muxOf(mustNotRun(t), middleware(t, locktest.Locker(t, q.store()), taskmw.WithTypeFunc("order:ship", key))))
			locks := locktest.Locker(t, q.store())
			id, _ := q.handOver(t, locks, shipTask(), asynq.MaxRetry(0), asynq.Timeout(time.Second))
			q.await(t, id, asynq.TaskStateArchived)
			locktest.ComesFree(t, locks, "order:42") // asynq is first if the time is over
		})
	}
}

func TestWhatIsNoHandoffIsArchived(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	q.serve(t, q.quick(), muxOf(mustNotRun(t), ship(t, locktest.Locker(t, q.store()), taskmw.Retry)))
	headers := map[string]string{taskmw.HandoffHeader: "no hand-off"}
	q.await(t, q.enqueue(t, asynq.NewTaskWithHeaders("order:ship", []byte(`{"order_id":42}`), headers)), asynq.TaskStateArchived)
}

func TestATaskThatCannotBeEnqueuedLeavesTheNameFree(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	locks := locktest.Locker(t, q.store())
	q.enqueue(t, shipTask(), asynq.TaskID("ship:42"), asynq.Unique(time.Hour))
	for want, option := range map[error]asynq.Option{asynq.ErrTaskIDConflict: asynq.TaskID("ship:42"), asynq.ErrDuplicateTask: asynq.Unique(time.Hour)} {
		err := locks.Do(t.Context(), "order:42", func(ctx context.Context) error {
			_, err := taskmw.Enqueue(ctx, q.client, shipTask(), keep, asynq.Queue(q.name), option)
			return err
		})
		if !errors.Is(err, want) {
			t.Errorf("%v, want %v", err, want)
		}
		if !isFree(t, q.store()) {
			t.Errorf("%v: not free", want)
		}
	}
}

func TestWhatCannotBeHandedOverStaysWithTheRequest(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	type option = []asynq.Option
	err := locktest.Memory(t).Do(t.Context(), "order:42", func(leased context.Context) error {
		for what, c := range map[string]struct {
			ctx    context.Context
			client *asynq.Client
			task   *asynq.Task
			keep   time.Duration
			opts   option
		}{
			"without a lease":    {t.Context(), q.client, shipTask(), keep, nil},
			"no client":          {leased, nil, shipTask(), keep, nil},
			"no task":            {leased, q.client, nil, keep, nil},
			"no time":            {leased, q.client, shipTask(), 0, nil},
			"a negative one":     {leased, q.client, shipTask(), -1, nil},
			"lost options":       {leased, q.client, asynq.NewTask("order:ship", nil, asynq.MaxRetry(1)), keep, nil},
			"a group":            {leased, q.client, shipTask(), keep, option{asynq.Group("g")}}, // asynq makes another task of it
			"too late":           {leased, q.client, shipTask(), keep, option{asynq.ProcessAt(time.Now()), asynq.ProcessIn(keep)}},
			"at too late a time": {leased, q.client, shipTask(), keep, option{asynq.ProcessIn(0), asynq.ProcessAt(time.Now().Add(2 * keep))}},
		} {
			if info, err := taskmw.Enqueue(c.ctx, c.client, c.task, c.keep, c.opts...); !errors.Is(err, core.ErrInvalid) || info != nil {
				t.Errorf("%s: %+v, %v", what, info, err)
			}
		}
		return leased.Err()
	})
	locktest.OK(t, err)
}
