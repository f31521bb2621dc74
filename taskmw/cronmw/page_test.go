package cronmw_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/internal/locktest"
	"github.com/holdfast-go/holdfast/taskmw/cronmw"
)

// What follows is the code of docs/guides/jobs.md; examples/readme_test.go compares them.

func withRobfig(locks *core.Locker, logger cron.Logger, writeReport func(context.Context) error) (*cron.Cron, error) {
	once := cronmw.SkipIfHeld(locks, "cron:report", logger, core.WithMinHold(50*time.Second))
	c := cron.New()
	_, err := c.AddJob("* * * * *", cron.NewChain(cron.Recover(logger), once).Then(cronmw.Func(writeReport)))
	return c, err
}

func withLocker(locks *core.Locker) (gocron.Scheduler, error) {
	locker, err := cronmw.NewLocker(locks, "cron:{job}", core.WithMinHold(50*time.Second)) // for jobs that run each minute
	if err != nil {
		return nil, err
	}
	return gocron.NewScheduler(gocron.WithDistributedLocker(locker))
}

func TestTheCodeOfThePageWorks(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	c, err := withRobfig(locks, cron.DiscardLogger, func(context.Context) error { return nil })
	if err != nil || len(c.Entries()) != 1 {
		t.Error(err)
	}
	byLocker, err := withLocker(locks)
	if err != nil {
		t.Fatal(err)
	}
	if err := byLocker.Shutdown(); err != nil {
		t.Error(err)
	}
}
