package taskmw_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw"
)

// What is wrong with a payload is in the table of all queues.
func TestTasksWithoutAUsableKeyAreArchived(t *testing.T) {
	t.Parallel()
	headers := map[string]string{"empty": "", "id": "secret", "uuid": "secret-0000"}
	for name, template := range map[string]string{
		"missing header":    "order:{header:none|int}",
		"empty header":      "order:{header:empty|text}",
		"no integer":        "order:{header:id|int}",
		"no UUID":           "order:{header:uuid|uuid}",
		"other case of it":  "order:{header:Id|text}",
		"no asynq context":  "order:{asynq:queue}",
		"no task ID":        "order:{asynq:id}",
		"the second of two": "{header:id|text} order:{id}",
	} {
		mux := muxOf(mustNotRun(t), middleware(t, locktest.Memory(t), taskmw.WithType("order:ship", template)))
		err := mux.ProcessTask(taskContext(t), asynq.NewTaskWithHeaders("order:ship", []byte(`{}`), headers))
		if !errors.Is(err, asynq.SkipRetry) || !errors.Is(err, core.ErrInvalid) || errors.Is(err, taskmw.ErrConflict) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		source := template[strings.LastIndex(template, "order:")+len("order:"):]
		source, _, _ = strings.Cut(source, "|")
		if text := err.Error(); !strings.Contains(text, source) || strings.Contains(text, "secret") {
			t.Errorf("%s: the reason is %q", name, text)
		}
	}
}

// As they lie in the queue. Those in a payload are in the table of all queues.
func TestHostileTasksGetLocksOfTheirOwnNames(t *testing.T) {
	t.Parallel()
	for source, task := range map[string]func(value string) *asynq.Task{
		"{header:id|text}": func(v string) *asynq.Task {
			return asynq.NewTaskWithHeaders("order:ship", nil, map[string]string{"id": v})
		},
		"{asynq:type}": func(v string) *asynq.Task { return asynq.NewTask("order:"+v, nil) },
	} {
		store := locktest.NewBackend()
		mux := muxOf(succeed, middleware(t, locktest.Locker(t, store), taskmw.WithType("order:*", strings.Replace(hostile.Template, "{v}", source, 1))))
		var names hostile.Names
		for what, value := range hostile.Values() {
			if err := mux.ProcessTask(taskContext(t), task(value)); err != nil {
				t.Errorf("%s, %s: %v", source, what, err)
				continue
			}
			c := <-store.Granted
			if source == "{asynq:type}" {
				value = "order:" + value
			}
			names.Check(t, value, c.Name)
			if len(c.Label) > driver.MaxLabel || strings.ContainsAny(c.Label, "\x00\r\n\x1b") {
				t.Errorf("%s, %s: label %q", source, what, c.Label)
			}
		}
	}
}
