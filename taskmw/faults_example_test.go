package taskmw_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw"
)

// In a test of your own, memlock.Store breaks as a lock service does.
func Example_faults() {
	ctx := context.Background()
	store := memlock.New()
	locks, err := core.New(store, core.WithTTL(300*time.Millisecond)) // it is renewed every 100 ms
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	var cfg asynq.Config
	taskmw.Configure(&cfg)
	mux := asynq.NewServeMux()
	mux.Use(taskmw.Middleware(locks, taskmw.WithType("order:ship", "order:{order_id}")))
	mux.HandleFunc("order:ship", func(ctx context.Context, _ *asynq.Task) error {
		store.Steal("order:42") // while the task is at work
		<-ctx.Done()
		fmt.Println("the handler:", context.Cause(ctx))
		return nil
	})

	task := asynq.NewTask("order:ship", []byte(`{"order_id":42}`))
	err = mux.ProcessTask(cfg.BaseContext(), task)
	fmt.Println("retried, as it was lost:", errors.Is(err, core.ErrLost))
	err = mux.ProcessTask(cfg.BaseContext(), task)
	fmt.Println("retried, as it is held:", errors.Is(err, taskmw.ErrConflict))
	store.SetDown(true)
	err = mux.ProcessTask(cfg.BaseContext(), task)
	fmt.Println("retried, as the service is down:", errors.Is(err, core.ErrUnavailable))
	// Output:
	// the handler: holdfast: lease of "order:42" lost: taken
	// retried, as it was lost: true
	// retried, as it is held: true
	// retried, as the service is down: true
}
