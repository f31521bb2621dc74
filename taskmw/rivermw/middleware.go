package rivermw

import (
	"context"
	"fmt"
	"log/slog"
	"strconv"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
)

// Option configures the middleware.
type Option func(*middleware) error

// middleware holds the lock of each job whose kind has a rule around its worker.
type middleware struct {
	rules  *adapter.Rules[*rivertype.JobRow] // by kind
	snooze time.Duration
	log    *slog.Logger // nil: slog.Default
}

var _ rivertype.WorkerMiddleware = (*middleware)(nil)

// New returns the middleware, which is safe for concurrent use. It checks the rules. It returns an error that matches
// [core.ErrInvalid] for a nil Locker, a kind that is given twice, a key that cannot be parsed, and options that cannot work.
func New(l *core.Locker, opts ...Option) (rivertype.WorkerMiddleware, error) {
	rules, err := adapter.NewRules[*rivertype.JobRow](l)
	m := &middleware{rules: rules, snooze: 5 * time.Second}
	if err == nil {
		err = adapter.Apply(m, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("rivermw: %w", err)
	}
	return m, nil
}

// Middleware is [New] for a program that cannot run without its rules: it panics where New returns an
// error.
func Middleware(l *core.Locker, opts ...Option) rivertype.WorkerMiddleware {
	return adapter.Must(New(l, opts...))
}

// WithSnooze sets for how long a job is snoozed that finds its name held; each time is up to a fifth
// shorter or longer. So is one that comes while the Locker drains. The default is 5 s. River looks for
// snoozed jobs every 5 s.
func WithSnooze(d time.Duration) Option {
	return func(m *middleware) error {
		if d <= 0 {
			return fmt.Errorf("WithSnooze(%v): %w: not positive", d, core.ErrInvalid)
		}
		m.snooze = d
		return nil
	}
}

// WithLogger sets where the middleware logs each job that is completed without a run, at level Info, with the
// job's kind, queue and ID. The default, also for nil, is slog.Default(). If it is given twice, the last one wins.
func WithLogger(log *slog.Logger) Option {
	return func(m *middleware) error {
		m.log = log
		return nil
	}
}

// IsMiddleware says to River what it is.
func (*middleware) IsMiddleware() bool { return true }

// IsPlugin says the same to newer versions of River.
func (*middleware) IsPlugin() bool { return true }

// Work implements rivertype.WorkerMiddleware. A job whose kind has no rule passes through unchanged.
func (m *middleware) Work(ctx context.Context, job *rivertype.JobRow, doInner func(context.Context) error) error {
	r := m.rules.Of(job.Kind)
	if r == nil {
		return doInner(ctx)
	}
	out := r.Run(ctx, job, doInner, core.WithOperation("job:"+job.Kind+":"+strconv.FormatInt(job.ID, 10)))
	return m.settled(ctx, job, out)
}
