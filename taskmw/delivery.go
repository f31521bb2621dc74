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

	door  *Door
	rule  *rule
	ctx   context.Context
	task  *asynq.Task
	next  asynq.Handler
	name  string   // the first of names
	names []string // mostly one
	label string
	ran   bool // the handler has begun
	lost  bool // one of its leases was lost meanwhile

	handoff core.Handoff // that the task came with, if it did
}

// process runs the handler, or says what becomes of the task without. While the Locker drains, a task
// on its last attempt waits: asynq puts it back into the queue when the server stops, where a return
// would archive it.
func (v *delivery) process() error {
	err := v.attempt()
	if !v.ran && !v.last && excused(err) {
		markOf(v.ctx).refusing()
	}
	if _, postponed := errors.AsType[*postponedError](err); postponed && !v.ran && v.waits {
		<-v.ctx.Done()
	}
	if !v.ran && v.isOver(v.ctx, err) {
		v.door.giveBack(v.ctx, v.handoff)
	}
	return err
}

func (v *delivery) attempt() error {
	switch action := v.rule.action; {
	case action == Coalesce:
		return v.coalesce()
	case action == Wait, action == Retry && v.waits:
		return v.outcome(v.run(nil, core.WithWait(budget(v.ctx))))
	}
	err := v.outcome(v.run(nil))
	if _, ok := errors.AsType[*ConflictError](err); !ok || v.ran || !v.waits {
		return err
	}
	return v.outcome(v.run(nil, core.WithWait(budget(v.ctx))))
}

// run runs the handler under the name. What stands ahead of the handler may stop it.
func (v *delivery) run(ahead func(context.Context) error, opts ...core.Option) error {
	var own error // the handler's
	work := func(ctx context.Context) error {
		if ahead != nil {
			if err := ahead(ctx); err != nil {
				return err
			}
		}
		v.ran = true
		if own = v.next.ProcessTask(ctx, v.task); own != nil {
			return errFailed // a loss in own is that of another lease
		}
		return nil
	}
	err := v.hold(work, v.options(opts)...)
	if !v.ran {
		return err
	}
	if lost, ok := errors.AsType[*core.LostError](err); ok {
		v.lost = true
		if known, ok := errors.AsType[*core.LostError](own); ok && *known == *lost {
			return own // the handler has returned the cause of its context
		}
		return errors.Join(own, lost)
	}
	return own
}

var errFailed = errors.New("the handler did not succeed")

// hold runs work under the names.
func (v *delivery) hold(work func(context.Context) error, opts ...core.Option) error {
	switch {
	case v.handoff.Name() != "":
		return v.rule.locker.DoAttached(v.ctx, v.handoff, work, opts...)
	case len(v.names) > 1:
		return v.rule.locker.DoAll(v.ctx, v.names, work, opts...)
	default:
		return v.rule.locker.Do(v.ctx, v.name, work, opts...)
	}
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
	case v.ran:
		return settled(err, v.lost)
	case errors.Is(err, core.ErrHeld):
		return v.conflict(err)
	case errors.Is(err, core.ErrDuplicate):
		v.unrun("its work is already done")
		return nil
	default:
		return refused(err)
	}
}
