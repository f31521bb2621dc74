package cronmw

import (
	"context"
	"errors"
	"fmt"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
)

// Func is a [cron.Job] with a context, which ends when the lock is lost. Its error is logged.
type Func func(context.Context) error

// Run implements cron.Job, for a job without [SkipIfHeld].
func (f Func) Run() { _ = f(context.Background()) }

// SkipIfHeld returns a wrapper for jobs of robfig/cron: a job runs while its name is locked, and a run is skipped if
// another process has the name. Skipped runs are logged as Info, and what went wrong as Error. It panics on
// what cannot work; [NewWrapper] returns an error instead.
//
// Give each job a name of its own, and [core.WithMinHold]; the package documentation says why. If the
// job is a [Func], it gets the lease's context. Any other job cannot learn that the lock is lost.
func SkipIfHeld(l *core.Locker, name string, logger cron.Logger, opts ...core.Option) cron.JobWrapper {
	return adapter.Must(NewWrapper(l, name, logger, opts...))
}

// NewWrapper is [SkipIfHeld], and returns an error that matches [core.ErrInvalid] for what cannot work.
func NewWrapper(l *core.Locker, name string, logger cron.Logger, opts ...core.Option) (cron.JobWrapper, error) {
	locks, err := l.With(append([]core.Option{core.WithWait(0), core.WithTemplate(name)}, opts...)...)
	if err == nil {
		err = key.CheckName(name)
	}
	if err == nil && logger == nil {
		err = fmt.Errorf("%w: nil logger", core.ErrInvalid)
	}
	if err != nil {
		return nil, fmt.Errorf("cronmw: %w", err)
	}
	return func(job cron.Job) cron.Job {
		return cron.FuncJob(func() { once(locks, name, logger, job) })
	}, nil
}

// once is one tick of a job.
func once(locks *core.Locker, name string, logger cron.Logger, job cron.Job) {
	ran := false
	err := locks.Do(context.Background(), name, func(ctx context.Context) error {
		ran = true
		if f, ok := job.(Func); ok {
			return f(ctx)
		}
		job.Run()
		return nil
	})
	switch {
	case err == nil:
	case !ran && (errors.Is(err, core.ErrHeld) || errors.Is(err, core.ErrDuplicate)):
		logger.Info("skip", "lock", name, "reason", err.Error())
	case !ran:
		logger.Error(err, "not run", "lock", name)
	default:
		logger.Error(err, "run", "lock", name)
	}
}
