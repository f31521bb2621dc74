package taskmw_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

// What ends a task depends on who holds its name: never on its own earlier delivery, nor on
// somebody of whom that is not known.
func TestActionsDependOnTheHolder(t *testing.T) {
	t.Parallel()
	const skip = "order:skip"
	q := newQueue(t)
	cases := []struct {
		taskType, holder string
		finished         bool // and not retried
	}{
		{skip, "task:order:skip:other", true},
		{skip, "task:order:skip:$ID", false},
		{skip, "task:order:other:other", false},
		{skip, "task:order:skip:more:other", false}, // of type order:skip:more
		{skip, "task:order:skip", false},
		{skip, "task:order:skip:", false},
		{skip, "someone", false},
		{skip, "", false},
		{"order:other", "task:order:other:other", false},
	}
	record, runs := recorder()
	srv := q.serve(t, q.quick(), muxOf(mustNotRun(t), record, middleware(t, locktest.Locker(t, q.store()),
		taskmw.WithType("order:*", "{asynq:id}"),
		taskmw.WithType(skip, "{asynq:id}").OnConflict(taskmw.Coalesce).OnConflict(taskmw.Skip))))
	defer srv.Shutdown() // before the names are free
	want := make(map[string]bool)
	for i, c := range cases {
		id := fmt.Sprintf("%s-%d", q.name, i)
		want[id] = c.finished
		holdAs(t, q.store(), id, strings.ReplaceAll(c.holder, "$ID", id))
		q.enqueue(t, asynq.NewTask(c.taskType, nil), asynq.TaskID(id))
	}
	for seen := make(map[string]bool); len(seen) < len(cases); {
		r := <-runs
		id, _ := asynq.GetTaskID(r.ctx)
		if want[id] != (r.err == nil) || !want[id] && !errors.Is(r.err, taskmw.ErrConflict) {
			t.Errorf("%s: %v, want it finished: %t", id, r.err, want[id])
		}
		seen[id] = true
	}
}

// It waits for the name, as long as the task has time.
func TestActionsOnTheLastAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action taskmw.Action
		holder string
		free   bool // in time
		state  asynq.TaskState
		reason string
	}{
		"retry":                {taskmw.Retry, "someone", false, asynq.TaskStateArchived, "last attempt"},
		"retry, it comes free": {taskmw.Retry, "someone", true, asynq.TaskStateCompleted, ""},
		"skip, a twin":         {taskmw.Skip, "task:order:ship:other", false, asynq.TaskStateCompleted, ""},
		"skip, another":        {taskmw.Skip, "someone", false, asynq.TaskStateArchived, "last attempt"},
		"skip, itself":         {taskmw.Skip, "task:order:ship:me", false, asynq.TaskStateArchived, "last attempt"},
		"coalesce, not a task": {taskmw.Coalesce, "someone", false, asynq.TaskStateArchived, "last attempt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reason := context.DeadlineExceeded.Error()
			for try := 0; try < 3 && reason == context.DeadlineExceeded.Error(); try++ { // asynq is first if the machine stands still
				q, handler, limit := newQueue(t), mustNotRun(t), 2*time.Second
				if c.state == asynq.TaskStateCompleted { // long before
					limit = time.Minute
				}
				store := locktest.NewBackend()
				release := holdAs(t, store, "order:42", c.holder)
				if c.free {
					handler = succeed
					go func() { <-store.Refused; release() }()
				}
				q.serve(t, q.quick(), muxOf(handler, ship(t, locktest.Locker(t, store), c.action)))
				id := q.enqueue(t, shipTask(), asynq.TaskID("me"), asynq.MaxRetry(0), asynq.Timeout(limit))
				reason = q.await(t, id, c.state).LastErr
			}
			if !strings.Contains(reason, c.reason) {
				t.Errorf("the reason is %q", reason)
			}
		})
	}
}

func TestCoalesceEndsDuplicatesInExactlyOneRunMore(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	began, finish := make(chan struct{}, 4), make(chan struct{})
	record, ended := recorder()
	q.serve(t, q.quick(), muxOf(func(context.Context, *asynq.Task) error {
		began <- struct{}{}
		<-finish
		return nil
	}, record, ship(t, locktest.Locker(t, q.store()), taskmw.Coalesce)))
	ids := []string{q.enqueue(t, shipTask())}
	<-began
	for range 3 {
		ids = append(ids, q.enqueue(t, shipTask(), asynq.MaxRetry(0)))
	}
	for range 2 { // all but the one that waits
		if err := (<-ended).err; err != nil || len(began) > 0 {
			t.Errorf("conflict: %v, and %d runs more", err, len(began))
		}
	}
	close(finish)
	for _, id := range ids {
		q.await(t, id, asynq.TaskStateCompleted)
	}
	if n := len(began); n != 1 {
		t.Errorf("%d runs more", n)
	}
}
