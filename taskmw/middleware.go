package taskmw

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/coalesce"
)

// Option configures the middleware: a [Rule], [WithConflictDelay] or [WithLogger].
type Option interface{ apply(*middleware) error }

type optionFunc func(*middleware) error

func (f optionFunc) apply(m *middleware) error { return f(m) }

// middleware is a checked and compiled set of rules.
type middleware struct {
	locks  *core.Locker
	rules  []*rule
	handed *rule // for tasks that have none, and come with a hand-off
	delay  time.Duration
	log    *slog.Logger
}

// New returns the middleware for asynq's ServeMux.Use. A task passes through unchanged if no rule matches it and
// [Enqueue] has not sent it. Several servers may share the middleware. Each needs [Configure].
//
// New returns an error that matches [core.ErrInvalid] for a nil Locker, a pattern that is given twice, a key that
// cannot be parsed or has an unknown source, and options that cannot work.
func New(l *core.Locker, opts ...Option) (asynq.MiddlewareFunc, error) {
	m := &middleware{locks: l, delay: 5 * time.Second}
	var err error
	if m.handed, err = handedRule(l); err != nil {
		return nil, fmt.Errorf("taskmw: %w", err)
	}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("taskmw: %w: nil option", core.ErrInvalid)
		}
		if err := o.apply(m); err != nil {
			return nil, fmt.Errorf("taskmw: %w", err)
		}
	}
	// asynq calls the outer function for every task.
	return func(next asynq.Handler) asynq.Handler {
		return asynq.HandlerFunc(func(ctx context.Context, t *asynq.Task) error { return m.process(ctx, t, next) })
	}, nil
}

// Middleware is [New] for a program that cannot run without its rules: it panics where New returns an
// error.
func Middleware(l *core.Locker, opts ...Option) asynq.MiddlewareFunc {
	return adapter.Must(New(l, opts...))
}

// WithConflictDelay sets the time, ± 20%, after which a task that found its name held is tried again.
// The default is 5 s. Zero means the server's next check of the retry queue, every
// asynq.Config.DelayedTaskCheckInterval. asynq counts in whole seconds. If it is given twice, the
// last one wins. A negative duration, or one above a year, is an error.
func WithConflictDelay(d time.Duration) Option {
	return optionFunc(func(m *middleware) error {
		if d < 0 || d > 365*24*time.Hour {
			return fmt.Errorf("WithConflictDelay(%s): %w: negative, or more than a year", d, core.ErrInvalid)
		}
		m.delay = d
		return nil
	})
}

// WithLogger sets where the middleware logs each task that is finished without a run, at level Info, with the
// task's type, queue and ID. The default, also for nil, is slog.Default(). If it is given twice, the last one wins.
func WithLogger(log *slog.Logger) Option {
	return optionFunc(func(m *middleware) error {
		m.log = log
		return nil
	})
}

// match returns the most specific rule for a task type, nil if there is none.
func (m *middleware) match(taskType string) (best *rule) {
	for _, r := range m.rules {
		fits := r.prefix == taskType || r.many && strings.HasPrefix(taskType, r.prefix)
		if fits && (best == nil || !r.many || len(r.prefix) > len(best.prefix)) {
			best = r
		}
	}
	return best
}

// errNotConfigured is what becomes of a task on a server that would count a held lock as a failure.
var errNotConfigured = errors.New("taskmw: this server has not been configured: " +
	"call taskmw.Configure(&cfg) on its asynq.Config before asynq.NewServer")

func (m *middleware) process(ctx context.Context, t *asynq.Task, next asynq.Handler) error {
	handoff, handed, err := handoffOf(t)
	r := m.match(t.Type())
	switch {
	case err != nil:
		return archived(err)
	case r == nil && !handed:
		return next.ProcessTask(ctx, t)
	case r == nil:
		r = m.handed
	}
	id, _ := asynq.GetTaskID(ctx)
	retried, ok := asynq.GetRetryCount(ctx)
	limit, _ := asynq.GetMaxRetry(ctx)
	a := &attempt{m: m, rule: r, ctx: ctx, task: t, next: next, handoff: handoff, label: label(t.Type(), id), last: ok && retried >= limit}
	over := false
	defer func() { // also if a key function panics
		// asynq does not bring it again; but a task that it puts back as the server stops has been cancelled, too.
		if !a.ran && (over || a.last && !errors.Is(ctx.Err(), context.Canceled)) {
			m.giveBack(ctx, handoff)
		}
	}()
	if ctx.Value(configured{}) == nil {
		return errNotConfigured
	}
	err = a.process()
	over = err == nil || isFinal(err)
	return err
}

// attempt is one attempt at a task.
type attempt struct {
	m       *middleware
	rule    *rule
	ctx     context.Context
	task    *asynq.Task
	next    asynq.Handler
	handoff core.Handoff // the zero one for a task that came without
	label   string
	last    bool // a failure of this attempt archives the task
	ran     bool // the handler has begun
}

// process runs the handler, or says what becomes of the task without. On the last attempt it waits, for what would
// otherwise be tried again: the name, or, while the Locker drains, another server, to which asynq gives the
// task as this one stops. It never waits for longer than the task has time: asynq would count that as a failure.
func (a *attempt) process() error {
	patience := budget(a.ctx)
	wait := patience
	if a.rule.action != Coalesce {
		wait = min(a.rule.Locker().Wait(), patience)
	}
	out := a.run(wait)
	if out.Reason == adapter.Held && a.last && wait < patience && !a.isTwin(out.Err) {
		out = a.run(budget(a.ctx))
	}
	if a.last && errors.Is(out.Err, core.ErrDraining) {
		<-a.ctx.Done()
	}
	return a.settled(out)
}

// run runs the handler under the names of the task.
func (a *attempt) run(wait time.Duration) adapter.Outcome {
	work := func(ctx context.Context) error {
		a.ran = true
		return a.next.ProcessTask(ctx, a.task)
	}
	opts := append(a.rule.scope(a.task), core.WithLabel(a.label), core.WithWait(wait))
	switch {
	case a.handoff.Name() != "": // the name is the task's already, so it needs nobody's run
		return a.rule.RunWith(a.ctx, a.task, work, func(ctx context.Context, names []string, inside func(context.Context) error) error {
			if len(names) > 1 || names[0] != a.handoff.Name() {
				return fmt.Errorf("%w: the task was enqueued under %q, and its rule makes %q of it", core.ErrInvalid, a.handoff.Name(), names)
			}
			return a.rule.Locker().DoAttached(ctx, a.handoff, inside, opts...)
		})
	case a.rule.action == Coalesce:
		return a.rule.RunWith(a.ctx, a.task, work, func(ctx context.Context, names []string, inside func(context.Context) error) error {
			call := coalesce.Call{Name: names[0], Work: a.task.Type(), Self: a.label, Wait: wait}
			return a.rule.group.Do(ctx, call, inside)
		})
	default:
		return a.rule.Run(a.ctx, a.task, work, opts...)
	}
}
