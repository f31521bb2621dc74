package rivermw

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/riverqueue/river/rivertype"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
)

// Option configures a [Door].
type Option interface{ apply(*Door) error }

type optionFunc func(*Door) error

func (f optionFunc) apply(d *Door) error { return f(d) }

// Door holds the lock of each job whose kind has a rule around its worker. Make it with [New] or
// [Middleware]. It is safe for concurrent use.
type Door struct {
	locks  *core.Locker
	rules  map[string]*adapter.Rule[*rivertype.JobRow] // by kind
	snooze time.Duration
	log    *slog.Logger // nil: slog.Default
}

var _ rivertype.WorkerMiddleware = (*Door)(nil)

// New checks the rules. It returns an error that matches [core.ErrInvalid] for a nil Locker, a kind that is
// given twice, a key that cannot be parsed, and options that cannot work.
func New(l *core.Locker, opts ...Option) (*Door, error) {
	if _, err := l.With(); err != nil {
		return nil, fmt.Errorf("rivermw: %w", err)
	}
	d := &Door{locks: l, rules: make(map[string]*adapter.Rule[*rivertype.JobRow]), snooze: 5 * time.Second}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("rivermw: %w: nil option", core.ErrInvalid)
		}
		if err := o.apply(d); err != nil {
			return nil, fmt.Errorf("rivermw: %w", err)
		}
	}
	return d, nil
}

// Middleware is [New] for a program that cannot run without its rules: it panics where New returns an
// error.
func Middleware(l *core.Locker, opts ...Option) *Door {
	d, err := New(l, opts...)
	if err != nil {
		panic(err.Error())
	}
	return d
}

// WithSnooze sets for how long a job is snoozed that finds its name held; each time is up to a fifth
// shorter or longer. So is one that comes while the Locker drains. The default is 5 s. River looks for
// snoozed jobs every 5 s.
func WithSnooze(d time.Duration) Option {
	return optionFunc(func(door *Door) error {
		if d <= 0 {
			return fmt.Errorf("WithSnooze(%v): %w: not positive", d, core.ErrInvalid)
		}
		door.snooze = d
		return nil
	})
}

// WithLogger sets where the middleware logs each job that is completed without a run, at level Info, with the
// job's kind, queue and ID. The default, also for nil, is slog.Default(). If it is given twice, the last one wins.
func WithLogger(log *slog.Logger) Option {
	return optionFunc(func(d *Door) error {
		d.log = log
		return nil
	})
}

// IsMiddleware says to River what a Door is.
func (*Door) IsMiddleware() bool { return true }

// IsPlugin says the same to newer versions of River.
func (*Door) IsPlugin() bool { return true }

// Work implements rivertype.WorkerMiddleware. A job whose kind has no rule passes through unchanged.
func (d *Door) Work(ctx context.Context, job *rivertype.JobRow, doInner func(context.Context) error) error {
	r := d.rules[job.Kind]
	if r == nil {
		return doInner(ctx)
	}
	out := r.Run(ctx, job, doInner, core.WithOperation("job:"+job.Kind+":"+strconv.FormatInt(job.ID, 10)))
	return d.settled(ctx, job, out)
}

// spread is d, up to a fifth shorter or longer.
func spread(d time.Duration) time.Duration {
	return d - d/5 + rand.N(2*d/5+1) //nolint:gosec // G404: it spreads retries
}
