package cronmw_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw/cronmw"
)

func gocronLocker(t *testing.T, locks *core.Locker, key string, opts ...core.Option) *cronmw.Locker {
	t.Helper()
	locker, err := cronmw.NewLocker(locks, key, opts...)
	locktest.OK(t, err)
	return locker
}

func TestASchedulersJobRunsUnderTheLockOfItsName(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(gocronLocker(t, locks, "cron:{job}")))
	locktest.OK(t, err)
	t.Cleanup(func() { locktest.OK(t, s.Shutdown()) })
	second, ran := gocronLocker(t, locks, "cron:{job}"), make(chan error)
	_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(func() {
		_, err := second.Lock(t.Context(), "report") // of another scheduler, which skips the run
		ran <- err
	}), gocron.WithName("report"))
	locktest.OK(t, err)
	s.Start()
	if err := <-ran; !errors.Is(err, core.ErrHeld) {
		t.Errorf("the second scheduler: %v, want held", err)
	}
	locktest.ComesFree(t, locks, "cron:report")
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
		run, err := locker.Lock(t.Context(), "report")
		locktest.OK(t, err)
		locktest.OK(t, run.Unlock(t.Context()))
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
