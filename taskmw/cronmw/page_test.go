package cronmw_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
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

func Example() {
	ctx := context.Background()
	store := memlock.New() // what the nodes share
	for node := range 2 {
		locks, err := core.New(store)
		if err != nil {
			panic(err)
		}
		c, err := withRobfig(locks, cron.DiscardLogger, func(context.Context) error {
			fmt.Println("node", node, "writes the report")
			return nil
		})
		if err != nil {
			panic(err)
		}
		c.Entries()[0].WrappedJob.Run() // the scheduler does it, each minute
		s, err := withLocker(locks)
		if err != nil {
			panic(err)
		}
		if err := errors.Join(s.Shutdown(), locks.Close(ctx)); err != nil {
			panic(err)
		}
	}
	// Output: node 0 writes the report
}
