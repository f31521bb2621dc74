package taskmw

import (
	"context"
	"fmt"
	"log/slog"
	"sync/atomic"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
)

// Door is a checked and compiled set of rules. Make one with [New]. It is safe for concurrent use,
// and several servers may share it.
type Door struct {
	locks    *core.Locker
	exact    map[string]*rule
	prefixes []*rule // longest first
	unruled  *rule   // for tasks that have none, and come with a hand-off
	log      *slog.Logger
	warned   atomic.Bool
}

// New checks the rules and compiles them. It returns an error that matches [core.ErrInvalid] for a
// nil Locker, a pattern that is given twice, a key that cannot be parsed or has an unknown source,
// and options that cannot work.
func New(l *core.Locker, opts ...Option) (*Door, error) {
	unruled, err := l.With(core.WithWait(0))
	if err != nil {
		return nil, fmt.Errorf("taskmw: %w", err)
	}
	d := &Door{locks: l, exact: make(map[string]*rule), unruled: &rule{locker: unruled}}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("taskmw: %w: nil option", core.ErrInvalid)
		}
		if err := o.apply(d); err != nil {
			return nil, fmt.Errorf("taskmw: %w", err)
		}
	}
	return d, nil
}

// Middleware is [New] for a program that cannot run without its rules: it panics where New returns an
// error.
//
// Use [Configure] on a server with this middleware. Without Configure, an attempt that finds its name
// held would cost the task one of its retries. So the task then waits for the name, as on a last
// attempt, and the first task of the middleware logs a warning; see [WithLogger].
func Middleware(l *core.Locker, opts ...Option) asynq.MiddlewareFunc {
	d, err := New(l, opts...)
	if err != nil {
		panic(err.Error())
	}
	return d.Middleware()
}

// Middleware returns the middleware for asynq's ServeMux.Use. A task passes through unchanged if no
// rule matches it and [Enqueue] has not sent it.
func (d *Door) Middleware() asynq.MiddlewareFunc {
	// asynq calls the outer function for every task.
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error {
			handoff, ok, err := handed(t)
			if err != nil {
				return keyless(err)
			}
			r := d.match(t.Type())
			if r == nil && !ok {
				return next.ProcessTask(ctx, t)
			}
			return d.process(ctx, t, r, handoff, next)
		})
	}
}

// process runs a task that has a rule, or a hand-off.
func (d *Door) process(ctx context.Context, t *asynq.Task, r *rule, handoff core.Handoff, next asynq.Handler) error {
	if r == nil {
		r = d.unruled
	}
	patient := d.patience(ctx)
	names, err := d.namesFor(ctx, t, r, handoff)
	if err = keyless(err); err != nil {
		if patient.isOver(ctx, err) {
			d.giveBack(ctx, handoff)
		}
		return err
	}
	id, _ := asynq.GetTaskID(ctx)
	v := &delivery{
		door: d, patience: patient, rule: r, ctx: ctx, task: t, next: next,
		name: names[0], names: names, handoff: handoff, label: label(t.Type(), id),
	}
	return v.process()
}
