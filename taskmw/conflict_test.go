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
	srv := q.serve(t, q.quick(), muxOf(mustNotRun(t), record, middleware(t, locktest.Locker(t, q.store()),
		taskmw.WithType("order:*", "{asynq:id}"),
		taskmw.WithType(skip, "{asynq:id}").OnConflict(taskmw.Coalesce).OnConflict(taskmw.Skip))))
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
