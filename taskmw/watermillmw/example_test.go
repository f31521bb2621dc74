package watermillmw_test

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
	"github.com/ThreeDotsLabs/watermill/pubsub/gochannel"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/taskmw/watermillmw"
)

// What follows is the code of docs/guides/jobs.md; examples/readme_test.go compares them.

func handlers(router *message.Router, subscriber message.Subscriber, publisher message.Publisher, locks *core.Locker) error {
	poison, err := middleware.PoisonQueueWithFilter(publisher, "orders.poison", func(err error) bool {
		return errors.Is(err, watermillmw.ErrKey) // another delivery would find the same
	})
	if err != nil {
		return err
	}
	router.AddMiddleware(poison, middleware.Recoverer) // outside the locks

	// One at a time for each order. An order is shipped once: later messages about it are acknowledged without a run, for a day.
	router.AddNoPublisherHandler("ship-orders", "orders", subscriber, ship).
		AddMiddleware(watermillmw.Lock(locks, "order:{order_id}", core.WithDedup(24*time.Hour)))
	return nil
}

func ship(msg *message.Message) error {
	ctx := msg.Context() // ends when the lock is lost, so do the work with it
	lease, _ := core.FromContext(ctx)
	return shipOrder(ctx, msg.Payload, lease.Fence())
}

func shipOrder(ctx context.Context, payload []byte, _ uint64) error {
	fmt.Println("shipping", string(payload))
	return ctx.Err()
}

func Example() {
	pubsub := gochannel.NewGoChannel(gochannel.Config{BlockPublishUntilSubscriberAck: true}, watermill.NopLogger{}) // one after the other
	poison := gochannel.NewGoChannel(gochannel.Config{}, watermill.NopLogger{})
	router, err := message.NewRouter(message.RouterConfig{}, watermill.NopLogger{})
	if err != nil {
		panic(err)
	}
	locks, err := core.New(memlock.New())
	if err != nil {
		panic(err)
	}
	if err := handlers(router, pubsub, poison, locks); err != nil {
		panic(err)
	}
	poisoned, err := poison.Subscribe(context.Background(), "orders.poison")
	if err != nil {
		panic(err)
	}
	over := make(chan error, 1)
	go func() { over <- router.Run(context.Background()) }()
	<-router.Running()
	for _, payload := range []string{`{"order_id": 42}`, `{"order_id": 42}`, `{}`} { // the second one is done already
		if err := pubsub.Publish("orders", message.NewMessage(payload, message.Payload(payload))); err != nil {
			panic(err)
		}
	}
	msg := <-poisoned
	msg.Ack()
	err = errors.Join(router.Close(), <-over, pubsub.Close(), poison.Close(), locks.Close(context.Background()))
	fmt.Println("poisoned", string(msg.Payload), err)
	// Output:
	// shipping {"order_id": 42}
	// poisoned {} <nil>
}
