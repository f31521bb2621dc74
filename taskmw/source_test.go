package taskmw_test

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw"
)

func TestKeysAreMadeOfTheTask(t *testing.T) {
	t.Parallel()
	payload := []byte(`{"id":42,"order":{"id":"o 1"},"paid":true,"text":"42"}`)
	headers := map[string]string{"tenant": "acme:eu", "Tenant": "other"}
	for key, want := range map[string]string{
		"order:{id}":                        "order:42",
		"order:{text}":                      "order:42",
		"order:{order.id}":                  "order:o%201",
		"{header:tenant|text}:{id}":         "acme%3Aeu:42",
		"{header:Tenant|text}:{paid}":       "other:true",
		"{asynq:type}":                      "order%3Aship",
		"{id}/{asynq:type}/{id}/{order.id}": "42/order%3Aship/42/o%201",
		"nightly":                           "nightly",
	} {
		store := newSpy()
		mux := muxOf(func(context.Context, *asynq.Task) error { return nil },
			middleware(t, newLocker(t, store), taskmw.WithType("order:ship", key)))
		task := asynq.NewTaskWithHeaders("order:ship", payload, headers)
		if err := mux.ProcessTask(taskContext(t), task); err != nil {
			t.Errorf("%s: %v", key, err)
			continue
		}
		if c := <-store.claims; c.Name != want {
			t.Errorf("%s is %s, want %s", key, c.Name, want)
		}
	}
}

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
		mux := muxOf(mustNotRun(t), middleware(t, newLocker(t, memlock.New()), taskmw.WithType("order:ship", template)))
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

func TestKeyFunctionNamesTheLock(t *testing.T) {
	t.Parallel()
	store := newSpy()
	type tenant struct{}
	mux := muxOf(func(context.Context, *asynq.Task) error { return nil }, middleware(t, newLocker(t, store),
		taskmw.WithTypeFunc("order:*", func(ctx context.Context, task *asynq.Task) (string, error) {
			name, _ := ctx.Value(tenant{}).(string)
			return name + ":" + task.Type(), nil
		}, core.WithTTL(time.Minute))))
	ctx := context.WithValue(taskContext(t), tenant{}, "acme")
	if err := mux.ProcessTask(ctx, shipTask()); err != nil {
		t.Fatal(err)
	}
	if c := <-store.claims; c.Name != "acme:order:ship" || c.TTL != time.Minute {
		t.Errorf("claimed %s for %s", c.Name, c.TTL)
	}
}

func TestKeyFunctionsErrorDecidesAboutTheRetry(t *testing.T) {
	t.Parallel()
	down := errors.New("database is down")
	for name, c := range map[string]struct {
		key     string
		err     error
		archive bool
	}{
		"its own error":       {"", down, false},
		"lock held elsewhere": {"", core.ErrHeld, false},
		"finished elsewhere":  {"", core.ErrDuplicate, false},
		"no key in the task":  {"", core.ErrInvalid, true},
		"not to be retried":   {"", asynq.SkipRetry, true},
		"empty name":          {"", nil, true},
		"name with a space":   {"a b", nil, true},
		"name too long":       {strings.Repeat("a", 201), nil, true},
	} {
		mux := muxOf(mustNotRun(t), middleware(t, newLocker(t, memlock.New()),
			taskmw.WithTypeFunc("*", func(context.Context, *asynq.Task) (string, error) { return c.key, c.err })))
		err := mux.ProcessTask(taskContext(t), shipTask())
		if archive := errors.Is(err, asynq.SkipRetry); err == nil || archive != c.archive {
			t.Errorf("%s: %v", name, err)
		}
		if !errors.Is(err, c.err) && c.err != nil || errors.Is(err, taskmw.ErrConflict) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

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

// hostileRule is the rule with the source.
func hostileRule(source string) taskmw.Rule {
	return taskmw.WithType("order:*", strings.Replace(hostile.Template, "{v}", source, 1))
}

func TestHostileTasksGetLocksOfTheirOwnNames(t *testing.T) {
	t.Parallel()
	for source, task := range hostileTasks() {
		store := newSpy()
		mux := muxOf(succeed, middleware(t, newLocker(t, store), hostileRule(source)))
		var names hostile.Names
		for what, value := range hostile.Values() {
			err := mux.ProcessTask(taskContext(t), task(value))
			if !utf8.ValidString(value) && err != nil {
				if !errors.Is(err, asynq.SkipRetry) || strings.Contains(err.Error(), value) {
					t.Errorf("%s, %s: %v", source, what, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s, %s: %v", source, what, err)
				continue
			}
			c := <-store.claims
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
