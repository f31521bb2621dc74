package migration

import (
	"context"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
)

// GocronLocker is a gocron.Locker: of many schedulers, one runs a job, and the others skip
// that run. The lease is renewed for as long as the job takes.
//
//	locker, err := NewGocronLocker(locks, "cron:{job}", core.WithMinHold(50*time.Second))
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
// Schedulers do not fire at the same instant. core.WithMinHold keeps the job's name taken from the
// start of a run, so that those that fire late skip it, too: choose it shorter than the interval,
// and longer than the schedulers' clocks differ. core.WithDedup would count from the end of the
// run, and a long run would swallow the next one.
//
// Nor can a lock end gocron's job: one that has to know of a loss calls Do itself.
type GocronLocker struct {
	locks *core.Locker
	key   *key.Key
}

var _ gocron.Locker = (*GocronLocker)(nil)

// NewGocronLocker returns a GocronLocker. The template has one source, the job's name.
func NewGocronLocker(l *core.Locker, template string, opts ...core.Option) (*GocronLocker, error) {
	parsed, err := key.Parse(template)
	if err != nil {
		return nil, err
	}
	opts = append([]core.Option{core.WithWait(0), core.WithTemplate(template)}, opts...)
	locks, err := l.With(opts...)
	if err != nil {
		return nil, err
	}
	return &GocronLocker{locks, parsed}, nil
}

// Lock implements gocron.Locker. On an error, such as core.ErrHeld, gocron skips this run, and
// tells AfterLockError.
func (g *GocronLocker) Lock(ctx context.Context, job string) (gocron.Lock, error) {
	name, err := g.key.Name(job)
	if err != nil {
		return nil, err
	}
	lease, err := g.locks.Acquire(ctx, name)
	if err != nil {
		return nil, err
	}
	return gocronLock{lease}, nil
}

type gocronLock struct{ lease *core.Lease }

// Unlock implements gocron.Lock.
func (g gocronLock) Unlock(ctx context.Context) error { return g.lease.Finish(ctx, nil) }
