package cronmw

import (
	"context"
	"fmt"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
)

// Locker is a [gocron.Locker]. Of many schedulers, one runs a job, and the others skip that run; gocron tells
// AfterLockError. The lease is renewed for as long as the job takes.
//
// gocron's jobs do not get the lease's context. A job that has to know of a loss calls [core.Locker.Do] itself.
type Locker struct {
	locks *core.Locker
	key   *key.Key
}

var _ gocron.Locker = (*Locker)(nil)

// NewLocker returns a Locker. The template has one source, whose value is the job's name: "cron:{job}".
// Without [core.WithWait], it does not wait. What cannot work is [core.ErrInvalid].
//
// So is [core.WithDedup], because gocron does not tell a Locker whether the job succeeded, and a run that failed would
// be marked as done. A dedup window that l has by default is ignored.
func NewLocker(l *core.Locker, template string, opts ...core.Option) (*Locker, error) {
	parsed, err := key.Parse(template)
	if err != nil {
		return nil, fmt.Errorf("cronmw: %w", err)
	}
	if n := len(parsed.Sources()); n != 1 {
		return nil, fmt.Errorf("cronmw: %w: key %q: %d sources, want one, for the job's name", core.ErrInvalid, template, n)
	}
	opts = append([]core.Option{core.WithWait(0), core.WithTemplate(template), core.WithDedup(0)}, opts...)
	locks, err := l.With(opts...)
	if err != nil {
		return nil, fmt.Errorf("cronmw: %w", err)
	}
	if window, _ := locks.Dedup(); window > 0 {
		return nil, fmt.Errorf("cronmw: %w: WithDedup: gocron does not tell whether the job succeeded", core.ErrInvalid)
	}
	return &Locker{locks, parsed}, nil
}

// Lock implements gocron.Locker. On an error, such as core.ErrHeld, gocron skips the run.
func (l *Locker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	name, err := l.key.Name(job)
	if err != nil {
		return nil, err
	}
	lease, err := l.locks.Acquire(ctx, name)
	if err != nil {
		return nil, err
	}
	return run{lease}, nil
}

// run is the lock of one run.
type run struct{ lease *core.Lease }

// Unlock implements gocron.Lock. It returns core.ErrLost if the lock was lost while the job ran. The lease has
// no dedup window, so the nil, which says nothing of the job, leaves no marker.
func (r run) Unlock(ctx context.Context) error { return r.lease.Finish(ctx, nil) }
