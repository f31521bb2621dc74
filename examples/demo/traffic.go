package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-go/holdfast/examples/demo/shoppb"
)

const (
	orders  = 5
	calls   = 400 // of each server, spread evenly over the orders
	clients = 100 // of each server, at the same time
	ships   = 8   // tasks to ship an order, for each of them: one is enough
)

// traffic is what comes to one server.
type traffic struct {
	server string
	total  int
	done   atomic.Int64 // confirmed to the client
}

// each runs call for total numbers, with so many clients at once, until one of them fails.
func (t *traffic) each(ctx context.Context, call func(ctx context.Context, i int64) error) error {
	var next atomic.Int64
	client := func(ctx context.Context) error {
		for i := next.Add(1) - 1; i < int64(t.total); i = next.Add(1) - 1 {
			if err := call(ctx, i); err != nil {
				return fmt.Errorf("%s: %w", t.server, err)
			}
		}
		return nil
	}
	return together(ctx, slices.Repeat([]func(context.Context) error{client}, clients)...)
}

// together runs functions at the same time and waits for all of them. The first error ends
// the others' context.
func together(ctx context.Context, fns ...func(context.Context) error) error {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	var wg sync.WaitGroup
	for _, fn := range fns {
		wg.Go(func() {
			if err := fn(ctx); err != nil {
				fail(err)
			}
		})
	}
	wg.Wait()
	return context.Cause(ctx)
}

// pay sends payments to the Echo server.
func (t *traffic) pay(ctx context.Context, address string) error {
	transport := &http.Transport{MaxIdleConnsPerHost: clients}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	return t.each(ctx, func(ctx context.Context, i int64) error {
		url := fmt.Sprintf("http://%s/orders/%d/pay", address, order(i))
		req, err := http.NewRequestWithContext(ctx, http.MethodPost, url, http.NoBody)
		if err != nil {
			return err
		}
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		if resp.StatusCode != http.StatusNoContent {
			return errors.New(resp.Status)
		}
		t.done.Add(1)
		return nil
	})
}

// refund sends refunds to the gRPC server.
func (t *traffic) refund(ctx context.Context, address string) error {
	conn, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return err
	}
	defer conn.Close()
	client := shoppb.NewOrdersClient(conn)
	return t.each(ctx, func(ctx context.Context, i int64) error {
		req := &shoppb.RefundRequest{Order: &shoppb.Order{Id: order(i)}}
		if _, err := client.Refund(ctx, req); err != nil {
			return err
		}
		t.done.Add(1)
		return nil
	})
}

// enqueue puts tasks into the queue, for a worker that starts when all are there.
func (t *traffic) enqueue(ctx context.Context, s *service, queue string) error {
	client := asynq.NewClientFromRedisClient(s.queues)
	return t.each(ctx, func(ctx context.Context, i int64) error {
		task, err := task(i)
		if err != nil {
			return err
		}
		_, err = client.EnqueueContext(ctx, task, asynq.Queue(queue))
		return err
	})
}

// await waits until the worker has done them.
func (t *traffic) await(ctx context.Context, s *service, queue string) error {
	queues := asynq.NewInspectorFromRedisClient(s.queues)
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for {
		info, err := queues.GetQueueInfo(queue)
		if err != nil {
			return err
		}
		if info.FailedTotal > 0 {
			return fmt.Errorf("%s: %d tasks have failed", t.server, info.FailedTotal)
		}
		t.done.Store(int64(info.ProcessedTotal))
		if info.ProcessedTotal >= t.total {
			return nil
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-tick.C:
		}
	}
}

// task is the i-th one: those to ship an order stand in the midst of the others, together.
func task(i int64) (*asynq.Task, error) {
	const begin = clients
	kind, id := "order:bonus", order(i)
	if n := i - begin; n >= 0 && n < orders*ships {
		kind, id = "order:ship", n/ships+1
	}
	text, err := json.Marshal(payload{OrderID: id})
	return asynq.NewTask(kind, text), err
}

// order is the one that the i-th change is for.
func order(i int64) int64 { return i%orders + 1 }
