package taskmw_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

const keep = time.Minute

// handOver takes order:42 and hands it over to a task.
func (q *queue) handOver(t *testing.T, l *core.Locker, task *asynq.Task, opts ...asynq.Option) (id string) {
	t.Helper()
	err := l.Do(t.Context(), "order:42", func(ctx context.Context) error {
		info, err := taskmw.Enqueue(ctx, q.client, task, keep, append(opts, asynq.Queue(q.name), asynq.Retention(time.Hour))...)
		if err == nil {
			id = info.ID
		}
		return err
	})
	locktest.OK(t, err)
	return id
}

func TestTheNameIsTakenFromTheRequestToTheFinishedTask(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	mux, lock := http.NewServeMux(), httpmw.Lock(locktest.Locker(t, q.store()), "order:{id|int}")
	ids := make(chan string, 2)
	mux.Handle("POST /orders/{id}/ship", lock(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		info, err := taskmw.Enqueue(r.Context(), q.client, shipTask(), keep, asynq.Queue(q.name), asynq.Retention(time.Hour))
		if err != nil {
			t.Error(err)
			return
		}
		ids <- info.ID
		w.WriteHeader(http.StatusAccepted)
	})))
	request := func(want int) {
		t.Helper()
		w := httptest.NewRecorder()
		mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/orders/42/ship", nil))
		if w.Code != want {
			t.Errorf("%d; want %d: %s", w.Code, want, w.Body)
		}
	}
	request(http.StatusAccepted)
	request(http.StatusConflict) // the task waits in its queue

	fences := make(chan uint64, 2)
	finish := make(chan struct{})
	q.serve(t, q.quick(), muxOf(func(ctx context.Context, _ *asynq.Task) error {
		lease, _ := core.FromContext(ctx)
		fences <- lease.Fence()
		<-finish
		return nil
	}, ship(t, locktest.Locker(t, q.store()), taskmw.Retry)))
	first := <-fences
	request(http.StatusConflict) // it runs
	close(finish)
	q.await(t, <-ids, asynq.TaskStateCompleted)
	request(http.StatusAccepted)
	q.await(t, <-ids, asynq.TaskStateCompleted)
	if second := <-fences; first == 0 || second <= first {
		t.Errorf("fence %d after %d", second, first)
	}
}

func TestATaskGoesOnUnderItsHandoffWithAnyActionAndWithoutARule(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]taskmw.Option{
		"retry": shipRule(taskmw.Retry), "skip": shipRule(taskmw.Skip), "coalesce": shipRule(taskmw.Coalesce), "none": taskmw.WithType("other:*", "x"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			locks, names := locktest.Locker(t, q.store()), make(chan string, 2)
			task := asynq.NewTaskWithHeaders("order:ship", shipTask().Payload(), map[string]string{"x": "kept"})
			id := q.handOver(t, locks, task, asynq.MaxRetry(0))
			q.serve(t, q.quick(), muxOf(func(ctx context.Context, task *asynq.Task) error {
				x, _ := core.FromContext(ctx)
				names <- x.Name() + " " + task.Headers()["x"]
				if locktest.IsFree(t, locks, "order:42") {
					t.Error("free while it runs")
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

func TestATaskThatIsArchivedUnrunFreesTheNameItWasHanded(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		payload  string
		rule     []core.Option
		defaults []core.Option // the Locker's
	}{
		"another name":                 {`{"order_id":43}`, nil, nil},
		"no name":                      {`{}`, nil, nil},
		"no name, limits by default":   {`{}`, nil, []core.Option{core.WithLimit(3)}},
		"no name, min-hold by default": {`{}`, nil, []core.Option{core.WithMinHold(time.Hour)}},
		"a limit":                      {`{"order_id":42}`, []core.Option{core.WithLimit(3)}, nil},
		"shared":                       {`{"order_id":42}`, []core.Option{core.WithShared()}, nil},
	} {
		store := memlock.New()
		locks, err := locktest.Locker(t, store).With(test.defaults...)
		locktest.OK(t, err)
		request, err := locktest.Locker(t, store).TryAcquire(t.Context(), "order:42")
		locktest.OK(t, err)
		handoff, err := request.Detach(t.Context(), keep)
		locktest.OK(t, err)
		headers := map[string]string{taskmw.HandoffHeader: handoff.Encode()}
		err = muxOf(mustNotRun(t), ship(t, locks, taskmw.Retry, test.rule...)).
			ProcessTask(taskContext(t), asynq.NewTaskWithHeaders("order:ship", []byte(test.payload), headers))
		if !errors.Is(err, asynq.SkipRetry) || !isFree(t, store) {
			t.Errorf("%s: %v, want an archived task and a free name", what, err)
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
			q.await(t, q.handOver(t, locks, shipTask(), asynq.MaxRetry(0), asynq.Timeout(time.Second)), asynq.TaskStateArchived)
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
	locks := locktest.Memory(t)
	withOptions := asynq.NewTask("order:ship", nil, asynq.MaxRetry(1))
	if _, err := taskmw.Enqueue(t.Context(), q.client, shipTask(), keep); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("without a lease: %v", err)
	}
	err := locks.Do(t.Context(), "order:42", func(ctx context.Context) error {
		for what, enqueue := range map[string]func() (*asynq.TaskInfo, error){
			"no client":      func() (*asynq.TaskInfo, error) { return taskmw.Enqueue(ctx, nil, shipTask(), keep) },
			"no task":        func() (*asynq.TaskInfo, error) { return taskmw.Enqueue(ctx, q.client, nil, keep) },
			"no time":        func() (*asynq.TaskInfo, error) { return taskmw.Enqueue(ctx, q.client, shipTask(), 0) },
			"lost options":   func() (*asynq.TaskInfo, error) { return taskmw.Enqueue(ctx, q.client, withOptions, keep) },
			"a negative one": func() (*asynq.TaskInfo, error) { return taskmw.Enqueue(ctx, q.client, shipTask(), -1) },
			// Its aggregator makes another task of it, without the hand-off.
			"a group": func() (*asynq.TaskInfo, error) {
				return taskmw.Enqueue(ctx, q.client, shipTask(), keep, asynq.Group("g"))
			},
			"too late": func() (*asynq.TaskInfo, error) {
				return taskmw.Enqueue(ctx, q.client, shipTask(), keep, asynq.ProcessAt(time.Now()), asynq.ProcessIn(keep))
			},
			"at too late a time": func() (*asynq.TaskInfo, error) {
				return taskmw.Enqueue(ctx, q.client, shipTask(), keep, asynq.ProcessIn(0), asynq.ProcessAt(time.Now().Add(2*keep)))
			},
		} {
			if info, err := enqueue(); !errors.Is(err, core.ErrInvalid) || info != nil {
				t.Errorf("%s: %+v, %v", what, info, err)
			}
		}
		return ctx.Err()
	})
	if err != nil {
		t.Error(err)
	}
}
