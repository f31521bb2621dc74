package taskmw

import (
	"context"
	"errors"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
)

// delivery is one attempt at a task that has a rule.
type delivery struct {
	patience

	rule  *rule
	ctx   context.Context
	task  *asynq.Task
	next  asynq.Handler
	name  string
	label string
	lease *core.Lease // set once the handler runs

	handoff core.Handoff // that the task came with, if it did
}

// process runs the handler, or says what becomes of the task without.
func (v *delivery) process() error {
	switch action := v.rule.action; {
	case action == Coalesce:
		return v.coalesce()
	case action == Wait, action == Retry && v.waits:
		return v.outcome(v.run(nil, core.WithWait(budget(v.ctx))))
	}
	err := v.outcome(v.run(nil))
	if _, ok := errors.AsType[*ConflictError](err); !ok || isFinal(err) || v.lease != nil || !v.waits {
		return err
	}
	return v.outcome(v.run(nil, core.WithWait(budget(v.ctx))))
}

// run runs the handler under the name. What stands ahead of the handler may stop it.
func (v *delivery) run(ahead func(context.Context) error, opts ...core.Option) error {
	work := func(ctx context.Context) error {
		if ahead != nil {
			if err := ahead(ctx); err != nil {
				return err
			}
		}
		v.lease, _ = core.FromContext(ctx)
		return v.next.ProcessTask(ctx, v.task)
	}
	if v.handoff.Name() != "" {
		return v.rule.locker.DoAttached(v.ctx, v.handoff, work, v.options(opts)...)
	}
	return v.rule.locker.Do(v.ctx, v.name, work, v.options(opts)...)
}

// options returns what only the task at hand decides, and then opts.
func (v *delivery) options(opts []core.Option) []core.Option {
	r := v.rule
	all := make([]core.Option, 0, len(opts)+2)
	if r.byType {
		all = append(all, core.WithDedupScope(text(v.task.Type(), "")))
		all = append(all, r.opts...) // the rule's own scope, if it has one, wins
	}
	all = append(all, core.WithLabel(v.label))
	return append(all, opts...)
}

// outcome is what an attempt comes to.
func (v *delivery) outcome(err error) error {
	switch {
	case v.lease != nil:
		return settled(err, v.lease)
	case errors.Is(err, core.ErrHeld):
		return v.conflict(err)
	default:
		return refused(err)
	}
}
