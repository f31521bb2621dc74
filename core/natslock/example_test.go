package natslock_test

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/natslock"
)

func open(ctx context.Context) (*core.Locker, error) {
	conn, err := nats.Connect("nats://nats-1:4222,nats://nats-2:4222", nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond),
		nats.FlusherTimeout(2*time.Second)) // by default, a silent server can hold a write up for a minute
	if err != nil {
		return nil, err
	}
	js, err := jetstream.New(conn)
	if err != nil {
		return nil, err
	}
	if _, err := js.CreateKeyValue(ctx, natslock.Bucket("locks", 3)); err != nil { // once, by a user who may
		return nil, err
	}
	store := natslock.New(js, "locks")
	if err := store.Check(ctx); err != nil { // the bucket's settings
		return nil, err
	}
	return core.New(store)
}

var _ = open

func Example() {
	conn, err := nats.Connect(nats.DefaultURL,
		nats.RetryOnFailedConnect(true), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	if err != nil {
		panic(err)
	}
	defer conn.Close()
	js, err := jetstream.New(conn)
	if err != nil {
		panic(err)
	}
	locks, err := core.New(natslock.New(js, "locks"))
	if err != nil {
		panic(err)
	}
	fmt.Println(locks.Close(context.Background()))
	// Output: <nil>
}
