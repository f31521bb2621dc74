package cronmw_test

import (
	"context"
	"fmt"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw/cronmw"
)

func ExampleSkipIfHeld() {
	ctx := context.Background()
	store := memlock.New() // what the nodes share
	for node := range 2 {
		locks, err := core.New(store)
		if err != nil {
			panic(err)
		}
		once := cronmw.SkipIfHeld(locks, "cron:report", cron.DefaultLogger, core.WithMinHold(50*time.Second))
		report := cron.NewChain(once).Then(cronmw.Func(func(context.Context) error {
			fmt.Println("node", node, "writes the report")
			return nil
		}))
		report.Run() // the scheduler does it: cron.New, and AddJob with "* * * * *"
		if err := locks.Close(ctx); err != nil {
			panic(err)
		}
	}
	// Output: node 0 writes the report
}
