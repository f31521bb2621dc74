package migration_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/examples/migration"
)

// outcomes is what a scheduler was told when it skipped a run; nil is a run.
type outcomes chan error

// schedule runs the job "report" at once, on a scheduler of its own.
func schedule(t *testing.T, locker gocron.Locker, job func(), told outcomes) {
	t.Helper()
	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Shutdown(); err != nil {
			t.Error(err)
		}
	})
	_, err = s.NewJob(gocron.OneTimeJob(gocron.OneTimeJobStartImmediately()), gocron.NewTask(job), gocron.WithName("report"),
		gocron.WithEventListeners(
			gocron.AfterJobRuns(func(uuid.UUID, string) { told <- nil }),
			gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { told <- err }),
		))
	if err != nil {
		t.Fatal(err)
	}
	s.Start()
}

func gocronLocker(t *testing.T, locks *core.Locker, key string, opts ...core.Option) *migration.GocronLocker {
	t.Helper()
	locker, err := migration.NewGocronLocker(locks, key, opts...)
	if err != nil {
		t.Fatal(err)
	}
	return locker
}

func memory(t *testing.T) *core.Locker {
	t.Helper()
	locks, err := core.New(memlock.New())
	if err != nil {
		t.Fatal(err)
	}
	closeAfter(t, locks)
	return locks
}

func TestASchedulerSkipsTheRunThatAnotherOneIsAt(t *testing.T) {
	t.Parallel()
	locks := memory(t)
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

func TestASchedulerThatFiresLateSkipsTheRun(t *testing.T) {
	t.Parallel()
	locks := memory(t)
	run, err := gocronLocker(t, locks, "cron:{job}", core.WithMinHold(time.Hour)).Lock(t.Context(), "report")
	if err != nil {
		t.Fatal(err)
	}
	if err := run.Unlock(t.Context()); err != nil { // the run is over
		t.Fatal(err)
	}
	late := make(outcomes, 1)
	locker := gocronLocker(t, locks, "cron:{job}", core.WithMinHold(time.Hour))
	schedule(t, locker, func() { t.Error("it ran again") }, late)
	if err := <-late; !errors.Is(err, core.ErrHeld) {
		t.Errorf("the late scheduler: %v, want held", err)
	}
}

// gocron-redis-lock, gocron's own locker on Redis, is a redsync mutex named like the job.
func TestGocronsRedisLockerAndHoldfastExcludeEachOther(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, share.Addr)
	theirs := redsyncOf(rdb, share.Prefix)
	ours := gocronLocker(t, lockerOf(t, rdb, share.Prefix), "{job}") // their prefix is ""
	excludeEachOther(t, rdb, share.Prefix, func(ctx context.Context, job string) (func() error, error) {
		lock, err := ours.Lock(ctx, job)
		if errors.Is(err, core.ErrHeld) {
			return nil, errTaken
		}
		if err != nil {
			return nil, err
		}
		return func() error { return lock.Unlock(ctx) }, nil
	}, theirs)
}

func TestAGocronKeyNeedsOneSource(t *testing.T) {
	t.Parallel()
	if _, err := migration.NewGocronLocker(memory(t), "cron:{job"); !errors.Is(err, core.ErrInvalid) {
		t.Errorf("%v", err)
	}
	if _, err := gocronLocker(t, memory(t), "cron:{a}:{b}").Lock(t.Context(), "report"); err == nil {
		t.Error("a key of two sources made a name of one")
	}
}
