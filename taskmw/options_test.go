package taskmw_test

import (
	"bytes"
	"context"
	"errors"
	"testing"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

// What the options of asynq's tasks do behind the middleware.

// asynq gives a task up whose time is over, and counts that as a failure. So nobody waits for longer than the task has.
func TestAConflictIsNoFailureHoweverPatientTheRule(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		wait time.Duration
		time func() asynq.Option
	}{
		"a timeout":          {time.Minute, func() asynq.Option { return asynq.Timeout(time.Second) }},
		"a timeout, forever": {core.WaitForever, func() asynq.Option { return asynq.Timeout(time.Second) }},
		"a deadline":         {time.Minute, func() asynq.Option { return asynq.Deadline(time.Now().Add(4 * time.Second)) }},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			record, runs := recorder()
			store := locktest.NewBackend()
			release := hold(t, store, "order:42")
			q.serve(t, q.quick(), muxOf(succeed, record, ship(t, locktest.Locker(t, store), taskmw.Retry, core.WithWait(c.wait))))
			id := q.enqueue(t, shipTask(), asynq.MaxRetry(1), c.time())
			if r := <-runs; !errors.Is(r.err, taskmw.ErrConflict) || r.ended != nil {
				t.Errorf("%v, the task's context: %v", r.err, r.ended)
			}
			if what == "a deadline" {
				return // after which it fails
			}
			release()
			if info := q.await(t, id, asynq.TaskStateCompleted); info.Retried != 0 || q.failures(t) != 0 {
				t.Errorf("%d failures: %+v", q.failures(t), info)
			}
		})
	}
}

// A task that asynq has made of a group is one of its own. If it names several orders, none of them is locked alone.
func TestATaskOfAGroupIsLockedByWhatItNames(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		aggregate func(payloads [][]byte) []byte
		locked    bool
	}{
		"one order": {func(p [][]byte) []byte { return p[0] }, true},
		"lines":     {func(p [][]byte) []byte { return bytes.Join(p, []byte("\n")) }, false}, // as in asynq's examples
		"an array":  {array, false},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			record, runs := recorder()
			cfg := q.quick()
			cfg.GroupGracePeriod, cfg.GroupMaxSize = time.Second, 2
			cfg.GroupAggregator = asynq.GroupAggregatorFunc(func(_ string, tasks []*asynq.Task) *asynq.Task {
				payloads := make([][]byte, len(tasks))
				for i, task := range tasks {
					payloads[i] = task.Payload()
				}
				return asynq.NewTask("order:ship", c.aggregate(payloads))
			})
			names := make(chan string, 1)
			q.serve(t, cfg, muxOf(func(ctx context.Context, _ *asynq.Task) error {
				x, _ := core.FromContext(ctx)
				names <- x.Name()
				return nil
			}, record, ship(t, locktest.Locker(t, q.store()), taskmw.Retry)))
			for range 2 {
				q.enqueue(t, shipTask(), asynq.Group("orders"))
			}
			r := <-runs
			if (r.err == nil) != c.locked || !c.locked && !errors.Is(r.err, asynq.SkipRetry) {
				t.Errorf("asynq is told %v", r.err)
			}
			if c.locked && <-names != "order:42" || len(names) > 0 {
				t.Error("locked by another name")
			}
		})
	}
}

func array(payloads [][]byte) []byte {
	return append(append([]byte("["), bytes.Join(payloads, []byte(","))...), ']')
}

// asynq's uniqueness ends as a task is done, also if the middleware has finished it.
func TestAUniqueTaskIsUniqueUntilItIsDone(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	record, runs := recorder()
	store := locktest.NewBackend()
	release := holdAs(t, store, "order:42", "task:order:bill:other")
	q.serve(t, q.quick(), muxOf(succeed, record, middleware(t, locktest.Locker(t, store),
		taskmw.WithType("order:ship", "order:{order_id}", core.WithDedup(time.Hour)),
		taskmw.WithType("order:bill", "order:{order_id}").OnConflict(taskmw.Skip))))
	unique := func(kind string) (string, error) {
		info, err := q.client.EnqueueContext(t.Context(), asynq.NewTask(kind, shipTask().Payload()), asynq.Queue(q.name), asynq.Unique(time.Hour), asynq.Retention(time.Hour))
		if err != nil {
			return "", err
		}
		return info.ID, nil
	}
	for range 2 { // finished without a run, and so is the next one
		id, err := unique("order:bill")
		if err != nil {
			t.Fatal(err)
		}
		q.await(t, id, asynq.TaskStateCompleted)
		<-runs
	}
	id, err := unique("order:ship")
	if err != nil {
		t.Fatal(err)
	}
	if r := <-runs; !errors.Is(r.err, taskmw.ErrConflict) {
		t.Errorf("held: %v", r.err)
	}
	if _, err := unique("order:ship"); !errors.Is(err, asynq.ErrDuplicateTask) {
		t.Errorf("beside one in conflict: %v", err)
	}
	release()
	for range 2 { // done, and so is the next one
		q.await(t, id, asynq.TaskStateCompleted)
		if id, err = unique("order:ship"); err != nil {
			t.Fatal(err)
		}
	}
}
