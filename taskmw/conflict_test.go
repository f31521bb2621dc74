package taskmw_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
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

func TestActionsOnTheLastAttempt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		action taskmw.Action
		wait   time.Duration // the rule's own
		holder string
		state  asynq.TaskState
		reason string
	}{
		"retry":                {taskmw.Retry, 0, "someone", asynq.TaskStateArchived, "last attempt"},
		"skip, a twin":         {taskmw.Skip, 0, "task:order:ship:other", asynq.TaskStateCompleted, ""},
		"skip, another":        {taskmw.Skip, 0, "someone", asynq.TaskStateArchived, "last attempt"},
		"skip, itself":         {taskmw.Skip, 0, "task:order:ship:me", asynq.TaskStateArchived, "last attempt"},
		"coalesce, not a task": {taskmw.Coalesce, 0, "someone", asynq.TaskStateArchived, "last attempt"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reason := context.DeadlineExceeded.Error()
			for try := 0; try < 3 && reason == context.DeadlineExceeded.Error(); try++ { // asynq is first if the machine stands still
				q := newQueue(t)
				store := locktest.NewBackend()
				holdAs(t, store, "order:42", c.holder)
				q.serve(t, q.quick(), muxOf(mustNotRun(t), ship(t, locktest.Locker(t, store), c.action, core.WithWait(c.wait))))
				id := q.enqueue(t, shipTask(), asynq.TaskID("me"), asynq.MaxRetry(0), asynq.Timeout(2*time.Second))
				reason = q.await(t, id, c.state).LastErr
			}
			if !strings.Contains(reason, c.reason) {
				t.Errorf("the reason is %q", reason)
			}
		})
	}
}
