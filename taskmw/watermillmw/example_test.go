package watermillmw_test

import (
	"context"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill/message"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw/watermillmw"
)

func ExampleLock() {
	ctx := context.Background()
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	defer locks.Close(ctx)

	lock := watermillmw.Lock(locks, "order:{order_id}", core.WithDedup(24*time.Hour)) // for router.AddMiddleware
	handle := lock(func(msg *message.Message) ([]*message.Message, error) {
		lease, _ := core.FromContext(msg.Context())
		fmt.Println("shipped under", lease.Name())
		return nil, nil
	})
	for range 2 { // the broker delivers it twice
		_, err := handle(message.NewMessage("1", message.Payload(`{"order_id": 42}`)))
		fmt.Println(err)
	}
	// Output:
	// shipped under order:42
	// <nil>
	// <nil>
}
