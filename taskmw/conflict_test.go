package taskmw_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw"
)

// verdicts of the middleware about a task that did not run.
const (
	retried  = "retried"
	finished = "finished"
)

func verdict(err error) string {
	switch {
	case err == nil:
		return finished
	case errors.Is(err, taskmw.ErrConflict):
		return retried
	default:
		return err.Error()
	}
}

// What ends a task depends on who holds its name: never on its own earlier delivery, nor on
// somebody of whom that is not known.
func TestActionsDependOnTheHolder(t *testing.T) {
	t.Parallel()
	const skip = "order:skip"
	q := newQueue(t)
	cases := []struct{ taskType, holder, want string }{
		{skip, "task:order:skip:other", finished},
		{skip, "task:order:skip:$ID", retried},
		{skip, "task:order:other:other", retried},
		{skip, "task:order:skip:more:other", retried}, // of type order:skip:more
		{skip, "task:order:skip", retried},
		{skip, "task:order:skip:", retried},
		{skip, "someone", retried},
		{skip, "", retried},
		{"order:other", "task:order:other:other", retried},
	}
	record, runs := recorder()
	srv := q.serve(t, q.quick(), muxOf(mustNotRun(t), record, taskmw.Middleware(newLocker(t, q.store()),
		taskmw.WithType("order:*", "{asynq:id}"),
		taskmw.WithType(skip, "{asynq:id}", taskmw.OnConflict(taskmw.Wait), taskmw.OnConflict(taskmw.Skip)))))
	defer srv.Shutdown() // before the names are free
	want := make(map[string]string)
	for i, c := range cases {
		id := fmt.Sprintf("%s-%d", q.name, i)
		want[id] = c.want
		holdAs(t, q.store(), id, strings.ReplaceAll(c.holder, "$ID", id))
		q.enqueue(t, asynq.NewTask(c.taskType, nil), asynq.TaskID(id))
	}
	for seen := make(map[string]bool); len(seen) < len(cases); {
		r := <-runs
		id, _ := asynq.GetTaskID(r.ctx)
		if got := verdict(r.err); got != want[id] {
			t.Errorf("%s is %s, want %s", id, got, want[id])
		}
		seen[id] = true
	}
	for i, c := range cases {
		id := fmt.Sprintf("%s-%d", q.name, i)
		if c.want == finished {
			q.await(t, id, asynq.TaskStateCompleted)
		}
	}
}

func TestActionsOnTheLastAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action taskmw.Action
		holder string
		state  asynq.TaskState
		reason string
	}{
		"skip, a twin":         {taskmw.Skip, "task:order:ship:other", asynq.TaskStateCompleted, ""},
		"skip, another":        {taskmw.Skip, "someone", asynq.TaskStateArchived, "last attempt"},
		"skip, itself":         {taskmw.Skip, "task:order:ship:me", asynq.TaskStateArchived, "last attempt"},
		"wait, another":        {taskmw.Wait, "someone", asynq.TaskStateArchived, "last attempt"},
		"coalesce, not a task": {taskmw.Coalesce, "someone", asynq.TaskStateArchived, "last attempt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reason := context.DeadlineExceeded.Error()
			for try := 0; try < 3 && reason == context.DeadlineExceeded.Error(); try++ { // asynq is first if the machine stands still
				q := newQueue(t)
				store := newSpy()
				holdAs(t, store, "order:42", c.holder)
				q.serve(t, q.quick(), muxOf(mustNotRun(t), shipOnly(t, newLocker(t, store), taskmw.OnConflict(c.action))))
				id := q.enqueue(t, shipTask(), asynq.TaskID("me"), asynq.MaxRetry(0), asynq.Timeout(2*time.Second))
				reason = q.await(t, id, c.state).LastErr
			}
			if !strings.Contains(reason, c.reason) {
				t.Errorf("the reason is %q", reason)
			}
		})
	}
}

func TestWithoutConfigureActionsThatEndATaskDoSoAtOnce(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	store := newSpy()
	holdAs(t, store, "order:42", "task:order:ship:other")
	record, runs := recorder()
	q.serveAsIs(t, q.quick(), muxOf(mustNotRun(t), record, shipOnly(t, newLocker(t, store), taskmw.OnConflict(taskmw.Skip))))
	q.enqueue(t, shipTask())
	if r := <-runs; r.err != nil {
		t.Errorf("got %v", r.err)
	}
}

func TestWaitWaitsAsLongAsTheTasksTimeAllows(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		release := hold(t, store, "order:42")
		ctx, cancel := context.WithTimeout(taskContext(t), time.Minute)
		defer cancel()
		runs := 0
		mux := muxOf(func(context.Context, *asynq.Task) error { runs++; return nil },
			shipOnly(t, newLocker(t, store), taskmw.OnConflict(taskmw.Wait), core.WithWait(time.Second)))
		began := time.Now()
		if err := mux.ProcessTask(ctx, shipTask()); verdict(err) != retried || ctx.Err() != nil {
			t.Errorf("got %v", err)
		}
		if waited := time.Since(began); waited < 59*time.Second {
			t.Errorf("waited %s", waited)
		}
		time.AfterFunc(10*time.Minute, release)
		if err := mux.ProcessTask(taskContext(t), shipTask()); err != nil || runs != 1 {
			t.Errorf("%d runs, error %v", runs, err)
		}
	})
}

func TestARulesOwnPatienceComesBeforeItsAction(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		hold(t, store, "order:42")
		began := time.Now()
		err := muxOf(mustNotRun(t), shipOnly(t, newLocker(t, store), taskmw.OnConflict(taskmw.Skip), core.WithWait(time.Minute))).
			ProcessTask(taskContext(t), shipTask())
		if waited := time.Since(began); verdict(err) != retried || waited != time.Minute {
			t.Errorf("after %s: %v", waited, err)
		}
	})
}

func TestHandlersErrorsPassUnchangedWhateverTheAction(t *testing.T) {
	t.Parallel()
	for _, action := range []taskmw.Action{taskmw.Wait, taskmw.Skip, taskmw.Coalesce} {
		for _, own := range []error{&core.HeldError{Name: "stock:7"}, conflict(false), conflict(true), asynq.SkipRetry} {
			runs := 0
			mux := muxOf(func(context.Context, *asynq.Task) error { runs++; return own },
				taskmw.Middleware(newLocker(t, memlock.New()), taskmw.WithLogger(slog.New(slog.DiscardHandler)),
					taskmw.WithType("order:ship", "order:{order_id}", taskmw.OnConflict(action))))
			if err := mux.ProcessTask(t.Context(), shipTask()); err != own || runs != 1 { //nolint:errorlint // the very value
				t.Errorf("%s: handler returned %v in %d runs, got %v", action, own, runs, err)
			}
		}
	}
}

func TestOnConflictOutOfItsPlaceIsRefused(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, memlock.New())
	action := taskmw.OnConflict(taskmw.Skip)
	_, inNew := core.New(memlock.New(), action)
	_, inWith := locks.With(action)
	_, inAcquire := locks.TryAcquire(t.Context(), "order:42", action)
	for where, err := range map[string]error{"New": inNew, "With": inWith, "TryAcquire": inAcquire} {
		if !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: %v", where, err)
		}
	}
}

func TestActionsHaveNames(t *testing.T) {
	t.Parallel()
	if got := fmt.Sprint(taskmw.Retry, taskmw.Wait, taskmw.Skip, taskmw.Coalesce, taskmw.Action(9)); got != "Retry Wait Skip Coalesce Action(9)" {
		t.Error(got)
	}
}
