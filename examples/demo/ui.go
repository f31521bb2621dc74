package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/http"
	"time"

	"github.com/hibiken/asynq"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/inspector"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/examples/demo/shoppb"
)

// The traffic behind the page: slow enough to be watched.
const (
	uiOrders  = 8
	uiClients = 12 // of the HTTP and of the gRPC server, each
	uiAddress = "127.0.0.1:8420"
)

// watchable serves the page of package inspector while the three servers work, until ctx ends.
func watchable(ctx context.Context, out *screen, address string) error {
	service, err := newService(ctx, address)
	if err != nil {
		return err
	}
	defer func() {
		if err := service.close(context.WithoutCancel(ctx)); err != nil {
			out.printf("\n%v\n", err)
		}
	}()
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	store, err := startStore(ctx, fail, false)
	if err != nil {
		return err
	}
	defer store.close()
	running, err := round{name: held, guarded: true, slow: true}.open(ctx, fail, service, store)
	if err != nil {
		return err
	}
	defer running.close()
	lis, err := listenUI(ctx)
	if err != nil {
		return err
	}
	out.printf("An Echo server, a gRPC server and an asynq worker lock orders on %s.\n\n   %s\n\nCtrl-C ends it.\n",
		service, out.bold("http://"+lis.Addr().String()+"/"))
	return together(ctx,
		func(ctx context.Context) error { return servePage(ctx, lis, service) },
		func(ctx context.Context) error { return payForEver(ctx, running.addresses["echo"]) },
		func(ctx context.Context) error { return refundForEver(ctx, running.addresses["grpc"]) },
		func(ctx context.Context) error { return enqueueForEver(ctx, service) })
}

func listenUI(ctx context.Context) (net.Listener, error) {
	var c net.ListenConfig
	if lis, err := c.Listen(ctx, "tcp", uiAddress); err == nil {
		return lis, nil
	}
	return listen(ctx) // the port is another's
}

// servePage is all that a service needs for the page.
func servePage(ctx context.Context, lis net.Listener, s *service) error {
	locks, err := core.New(redislock.New(s.rdb, redislock.WithPrefix(s.prefix(held))))
	if err != nil {
		return err
	}
	defer closeLocks(ctx, locks)
	page := inspector.New(locks, inspector.WithTitle("demo · "+s.String()), inspector.WithAuthorization(everybody))
	defer page.Close()
	server := &http.Server{Handler: page, ReadHeaderTimeout: patience}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go page.Watch(ctx)
	if err := server.Serve(lis); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// everybody may take a lock away here: the page can only be reached from this machine, and nothing is at stake.
func everybody(*http.Request, inspector.Action) (who string, err error) {
	return "a guest of the demo", nil
}

// forEver has clients call again and again. What fails is no matter here: the servers may be ending, and a
// lock may have been taken away.
func forEver(ctx context.Context, call func(ctx context.Context, id int64) error) error {
	client := func(ctx context.Context) error {
		for ctx.Err() == nil {
			_ = call(ctx, 1+rand.Int64N(uiOrders)) //nolint:gosec // G404: no secret
			think(ctx)
		}
		return nil
	}
	clients := make([]func(context.Context) error, uiClients)
	for i := range clients {
		clients[i] = client
	}
	return together(ctx, clients...)
}

// think is what a client does between two calls.
func think(ctx context.Context) { pause(ctx, 3*time.Second) }

// pause takes a random time with the given mean.
func pause(ctx context.Context, mean time.Duration) {
	t := time.NewTimer(time.Duration(rand.ExpFloat64() * float64(mean))) //nolint:gosec // G404: no secret
	defer t.Stop()
	select {
	case <-ctx.Done():
	case <-t.C:
	}
}

func payForEver(ctx context.Context, address string) error {
	return forEver(ctx, func(ctx context.Context, id int64) error {
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s/orders/%d/pay", address, id), http.NoBody)
		if err != nil {
			return err
		}
		resp, err := http.DefaultClient.Do(req)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	})
}

func refundForEver(ctx context.Context, address string) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := shoppb.NewOrdersClient(conn)
	return forEver(ctx, func(ctx context.Context, id int64) error {
		_, err := client.Refund(ctx, &shoppb.RefundRequest{Order: &shoppb.Order{Id: id}})
		return err
	})
}

func enqueueForEver(ctx context.Context, s *service) error {
	client := asynq.NewClientFromRedisClient(s.queues)
	for ctx.Err() == nil {
		task, err := task(rand.Int64N(uiOrders)) //nolint:gosec // G404: no secret
		if err != nil {
			return err
		}
		if _, err := client.EnqueueContext(ctx, task, asynq.Queue(s.queue(held))); err != nil && ctx.Err() == nil {
			return err
		}
		pause(ctx, time.Second)
	}
	return nil
}
