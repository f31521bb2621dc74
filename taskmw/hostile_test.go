package taskmw_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	"github.com/holdfast-go/holdfast/taskmw"
)

// hostileTasks are the ways by which a value gets into a task: as it lies in the queue.
func hostileTasks() map[string]func(value string) *asynq.Task {
	return map[string]func(string) *asynq.Task{
		"{id}": func(v string) *asynq.Task {
			text := []byte(`"` + v + `"`)
			if utf8.ValidString(v) {
				text, _ = json.Marshal(v) // of a string: never fails
			}
			return asynq.NewTask("order:ship", []byte(`{"id":`+string(text)+`}`))
		},
		"{header:id|text}": func(v string) *asynq.Task {
			return asynq.NewTaskWithHeaders("order:ship", nil, map[string]string{"id": v})
		},
		"{asynq:type}": func(v string) *asynq.Task { return asynq.NewTask("order:"+v, nil) },
	}
}

func TestHostileTasksGetLocksOfTheirOwnNames(t *testing.T) {
	t.Parallel()
	for source, task := range hostileTasks() {
		t.Run(source, func(t *testing.T) {
			t.Parallel()
			q := newQueue(t)
			store := newSpy()
			q.serve(t, q.quick(), muxOf(succeed, taskmw.Middleware(newLocker(t, store),
				taskmw.WithType("order:*", strings.Replace(hostile.Template, "{v}", source, 1)))))
			var names hostile.Names
			for what, value := range hostile.Values() {
				id, err := q.offer(t, task(value))
				switch {
				case err != nil && !utf8.ValidString(value): // asynq does not queue it
				case err != nil:
					t.Errorf("%s: %v", what, err)
				case !utf8.ValidString(value): // a payload may be any bytes
					info := q.await(t, id, asynq.TaskStateArchived)
					if info.Retried != 0 || !strings.Contains(info.LastErr, "not exactly one JSON value") || strings.Contains(info.LastErr, value) {
						t.Errorf("%s: retried %d times, %q", what, info.Retried, info.LastErr)
					}
				default:
					q.await(t, id, asynq.TaskStateCompleted)
					c := <-store.claims
					if source == "{asynq:type}" {
						value = "order:" + value
					}
					names.Check(t, value, c.Name)
					if len(c.Label) > driver.MaxLabel || strings.ContainsAny(c.Label, "\x00\r\n\x1b") {
						t.Errorf("%s: label %q", what, c.Label)
					}
				}
			}
		})
	}
}

// offer enqueues a task that asynq may refuse.
func (q *queue) offer(t *testing.T, task *asynq.Task) (id string, err error) {
	t.Helper()
	info, err := q.client.EnqueueContext(t.Context(), task, asynq.Queue(q.name), asynq.Retention(time.Hour))
	if err != nil {
		return "", err
	}
	return info.ID, nil
}
