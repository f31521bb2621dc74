package cronmw_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw/cronmw"
)

// outcomes is what a scheduler was told when it skipped a run; nil is a run.
type outcomes chan error

// schedule runs the job "report" at once, on a scheduler of its own.
func schedule(t *testing.T, locker gocron.Locker, job func(), told outcomes) {
	t.Helper()
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	locktest.OK(t, err)
	t.Cleanup(func() {
		locktest.OK(t, s.Shutdown())
	})
	_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(job), gocron.WithName("report"),
		gocron.WithEventListeners(
			gocron.AfterJobRuns(func(uuid.UUID, string) { told <- nil }),
			gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { told <- err }),
		))
	locktest.OK(t, err)
	s.Start()
}

func gocronLocker(t *testing.T, locks *core.Locker, key string, opts ...core.Option) *cronmw.Locker {
	t.Helper()
	locker, err := cronmw.NewLocker(locks, key, opts...)
	locktest.OK(t, err)
	return locker
}

func TestASchedulerSkipsTheRunThatAnotherOneIsAt(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	running, finish := make(chan struct{}), make(chan struct{})
	first, second := make(outcomes, 1), make(outcomes, 1)
	schedule(t, gocronLocker(t, locks, "cron:{job}"), func() { close(running); <-finish }, first)
	<-running
	schedule(t, gocronLocker(t, locks, "cron:{job}"), func() { t.Error("it ran twice at once") }, second)
	if err := <-second; !errors.Is(err, core.ErrHeld) {
		t.Errorf("the second scheduler: %v, want held", err)
	}
	close(finish)
	if err := <-first; err != nil {
		t.Errorf("the first scheduler: %v", err)
	}
}

func TestAGocronLockerRefusesDedup(t *testing.T) {
	t.Parallel()
	if _, err := cronmw.NewLocker(locktest.Memory(t), "cron:{job}", core.WithDedup(time.Hour)); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("%v, want ErrInvalid", err)
	}
}

// The process's Locker has a dedup window by default, and gocron does not tell whether the run failed.
func TestAGocronRunLeavesNoMarker(t *testing.T) {
	t.Parallel()
	locks, err := locktest.Memory(t).With(core.WithDedup(time.Hour))
	locktest.OK(t, err)
	locker := gocronLocker(t, locks, "cron:{job}")
	for range 2 {
		told := make(outcomes, 1)
		schedule(t, locker, func() {}, told)
		locktest.OK(t, <-told)
		locktest.ComesFree(t, locks, "cron:report") // gocron tells of a run before it unlocks
	}
}

func TestALockersKeyHasOneSource(t *testing.T) {
	t.Parallel()
	for _, template := range []string{"cron:{job", "cron", "cron:{a}:{b}"} {
		if _, err := cronmw.NewLocker(locktest.Memory(t), template); !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: %v", template, err)
		}
	}
}
