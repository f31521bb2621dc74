package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/taskmw"
)

// duplicates come while the first task of a key runs.
const duplicates = 3

// scene is what becomes of the tasks of one key, which have a type of their own.
type scene struct {
	name   string
	action taskmw.Action
	wait   time.Duration
	want   tally
	meet   int // so many duplicates are over, for now, before the first task ends
	text   string

	begun, enough, over chan struct{} // closed: the first task runs; it may end; all are over
	mu                  sync.Mutex    // protects the rest
	got                 tally
	returned            int
}

type tally struct{ runs, unrun int }

func scenes() []*scene {
	all := []*scene{
		{name: "Retry", action: taskmw.Retry, want: tally{4, 0}, meet: 3, text: "each one is tried again, and runs later"},
		{name: "Retry, wait", action: taskmw.Retry, wait: core.WaitForever, want: tally{4, 0}, meet: 0, text: "each one waits in its worker, and runs next"},
		{name: "Skip", action: taskmw.Skip, want: tally{1, 3}, meet: 3, text: "what runs stands for all"},
		{name: "Coalesce", action: taskmw.Coalesce, want: tally{2, 2}, meet: 2, text: "one more run, after the last of them came"},
	}
	for _, c := range all {
		c.begun, c.enough, c.over = make(chan struct{}), make(chan struct{}), make(chan struct{})
		if c.meet == 0 {
			close(c.enough)
		}
	}
	return all
}

func (c *scene) taskType() string { return "report:" + c.name }

// watch counts what the middleware answers.
func watch(byType map[string]*scene) asynq.MiddlewareFunc {
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			err := next.ProcessTask(ctx, t)
			byType[t.Type()].count(err)
			return err
		})
	}
}

func (c *scene) count(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.returned++; c.returned == c.meet {
		close(c.enough)
	}
	if err != nil { // asynq tries again
		return
	}
	c.got.unrun++ // or has run: run has taken it off
	if c.got.runs+c.got.unrun == 1+duplicates {
		close(c.over)
	}
}

// run is the tasks' handler.
func (c *scene) run(ctx context.Context) error {
	c.mu.Lock()
	first := c.got.runs == 0
	c.got.runs++
	c.got.unrun--
	c.mu.Unlock()
	if !first {
		return nil
	}
	close(c.begun)
	return wait(ctx, c.enough)
}

func (c *scene) play(ctx context.Context, client *asynq.Client) error {
	for i := range 1 + duplicates {
		if _, err := client.EnqueueContext(ctx, asynq.NewTask(c.taskType(), nil)); err != nil {
			return err
		}
		if i > 0 {
			continue
		}
		if err := wait(ctx, c.begun); err != nil {
			return err
		}
	}
	return nil
}

func wait(ctx context.Context, event <-chan struct{}) error {
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-event:
		return nil
	}
}

func report(ctx context.Context, out io.Writer, all []*scene) error {
	var wrong []error
	fmt.Fprintf(out, "While a task runs, %d more of its key come\n\n   %-11s %5s %6s\n", duplicates, "action", "runs", "unrun")
	for _, c := range all {
		if err := wait(ctx, c.over); err != nil {
			return fmt.Errorf("%s: %w", c.name, err)
		}
		c.mu.Lock()
		got := c.got
		c.mu.Unlock()
		fmt.Fprintf(out, "   %-11s %5d %6d   %s\n", c.name, got.runs, got.unrun, c.text)
		if got != c.want {
			wrong = append(wrong, fmt.Errorf("%s: %+v, want %+v", c.name, got, c.want))
		}
	}
	return errors.Join(wrong...)
}
