package taskmw_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw"
)

func TestTheFenceTravelsWithTheTask(t *testing.T) {
	t.Parallel()
	q := newQueue(t)
	var guard fence.Memory
	done := make(chan error, 1)
	q.serve(t, q.quick(), muxOf(func(_ context.Context, task *asynq.Task) error {
		f, err := taskmw.Fence(task)
		if err == nil {
			err = guard.Do("order:42", f, func() error { return nil })
		}
		done <- err
		return err
	}))
	locks := newLocker(t, memlock.New())
	task := func() (task *asynq.Task) {
		err := locks.Do(t.Context(), "order:42", func(ctx context.Context) error {
			given := map[string]string{"x-other": "1", taskmw.FenceHeader: "1"}
			before := maps.Clone(given)
			headers, err := taskmw.FenceHeaders(ctx, "order:42", given)
			if headers["x-other"] != "1" || !maps.Equal(given, before) {
				t.Errorf("headers %q of %q", headers, given)
			}
			task = asynq.NewTaskWithHeaders("order:index", nil, headers)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		return task
	}
	early, late := task(), task()
	q.await(t, q.enqueue(t, late), asynq.TaskStateCompleted)
	if err := <-done; err != nil {
		t.Error(err)
	}
	q.enqueue(t, early, asynq.MaxRetry(0)) // it was enqueued first, and comes second
	if err := <-done; !errors.Is(err, fence.ErrStale) {
		t.Errorf("%v; want %v", err, fence.ErrStale)
	}
	q.await(t, q.enqueue(t, asynq.NewTask("order:index", nil)), asynq.TaskStateArchived) // no other attempt would have a fence
	if err := <-done; !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("%v; want %v", err, fence.ErrInvalid)
	}
	if headers, err := taskmw.FenceHeaders(t.Context(), "order:42", nil); headers != nil || !errors.Is(err, fence.ErrInvalid) {
		t.Errorf("without a lease: %q, %v", headers, err)
	}
}

func TestATaskHeaderThatIsNoFenceIsInvalid(t *testing.T) {
	t.Parallel()
	for what, headers := range map[string]map[string]string{
		"none":       nil,
		"other":      {"x": "1"},
		"other case": {"Holdfast-Fence": "1"},
		"empty":      {taskmw.FenceHeader: ""},
		"a list":     {taskmw.FenceHeader: "1, 2"},
		"zero":       {taskmw.FenceHeader: "0"},
		"negative":   {taskmw.FenceHeader: "-1"},
		"spaces":     {taskmw.FenceHeader: " 1"},
		"too large":  {taskmw.FenceHeader: "9007199254740993"},
		"very long":  {taskmw.FenceHeader: strings.Repeat("9", 5000)},
		"text":       {taskmw.FenceHeader: "order:42"},
	} {
		f, err := taskmw.Fence(asynq.NewTaskWithHeaders("order:index", nil, headers))
		if f != 0 || !errors.Is(err, fence.ErrInvalid) || !errors.Is(err, asynq.SkipRetry) || len(err.Error()) > 300 {
			t.Errorf("%s: %d, %v", what, f, err)
		}
	}
	headers := map[string]string{taskmw.FenceHeader: "9007199254740992"}
	if f, err := taskmw.Fence(asynq.NewTaskWithHeaders("order:index", nil, headers)); f != fence.Max || err != nil {
		t.Errorf("%d, %v", f, err)
	}
}

func TestFenceHeadersWithoutHeaders(t *testing.T) {
	t.Parallel()
	err := newLocker(t, memlock.New()).Do(t.Context(), "order:42", func(ctx context.Context) error {
		headers, err := taskmw.FenceHeaders(ctx, "order:42", nil)
		if err != nil {
			return err
		}
		f, err := taskmw.Fence(asynq.NewTaskWithHeaders("order:index", nil, headers))
		if want, _ := core.FenceFor(ctx, "order:42"); f != want || want == 0 {
			t.Errorf("%d; want %d", f, want)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
