package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/hibiken/asynq"
	"github.com/labstack/echo/v4"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/demo/shoppb"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
	"github.com/holdfast-go/holdfast/taskmw"
)

// patience is how long a request waits for its turn. Without core.WithWait the HTTP server
// answers 409 at once, the gRPC server ABORTED, and a task comes back in 5 s: right for most
// services, but slow to watch.
const patience = time.Minute

// The three servers. Without locks they serve as well, and nobody waits.

// echoDoor serves POST /orders/{id}/pay.
func echoDoor(s shop, locks *core.Locker) http.Handler {
	var guard []echo.MiddlewareFunc
	if locks != nil {
		guard = append(guard, echomw.Lock(locks, "order:{id|int}", core.WithWait(patience)))
	}
	e := echo.New()
	e.POST("/orders/:id/pay", func(c echo.Context) error {
		id, err := strconv.ParseInt(c.Param("id"), 10, 64)
		if err != nil {
			return echo.ErrNotFound
		}
		if err := s.change(c.Request().Context(), id, func(o *Order) { o.Paid++ }); err != nil {
			return err
		}
		return c.NoContent(http.StatusNoContent)
	}, guard...)
	return e
}

// grpcDoor serves shop.v1.Orders.
func grpcDoor(s shop, locks *core.Locker) *grpc.Server {
	var guard []grpc.ServerOption
	if locks != nil {
		guard = grpcmw.ServerOptions(locks,
			grpcmw.WithMethod("/shop.v1.Orders/Refund", "order:{order.id}", core.WithWait(patience)))
	}
	srv := grpc.NewServer(guard...)
	shoppb.RegisterOrdersServer(srv, &refunds{shop: s})
	return srv
}

type refunds struct {
	shoppb.UnimplementedOrdersServer
	shop shop
}

func (r *refunds) Refund(ctx context.Context, req *shoppb.RefundRequest) (*shoppb.RefundReply, error) {
	reply := new(shoppb.RefundReply)
	err := r.shop.change(ctx, req.GetOrder().GetId(), func(o *Order) {
		o.Refunded++
		reply.Refunds = int64(o.Refunded)
	})
	if err != nil {
		return nil, err
	}
	return reply, nil
}

// taskDoor runs the tasks order:bonus and order:ship. There are many to ship each order,
// and with the lock comes the memory that one has.
func taskDoor(s shop, locks *core.Locker, cfg *asynq.Config) asynq.Handler {
	mux := asynq.NewServeMux()
	if locks != nil {
		taskmw.Configure(cfg)
		mux.Use(taskmw.Middleware(locks,
			taskmw.WithType("order:bonus", "order:{order_id}", core.WithWait(patience)),
			taskmw.WithType("order:ship", "order:{order_id}", core.WithWait(patience), core.WithDedup(time.Hour))))
	}
	mux.HandleFunc("order:bonus", func(ctx context.Context, t *asynq.Task) error {
		p, err := parse(t)
		if err != nil {
			return err
		}
		return s.change(ctx, p.OrderID, func(o *Order) { o.Bonus++ })
	})
	mux.HandleFunc("order:ship", func(ctx context.Context, t *asynq.Task) error {
		p, err := parse(t)
		if err != nil {
			return err
		}
		return s.ship(ctx, p.OrderID)
	})
	return mux
}

// payload is that of both types of task.
type payload struct {
	OrderID int64 `json:"order_id"`
}

func parse(t *asynq.Task) (payload, error) {
	var p payload
	if err := json.Unmarshal(t.Payload(), &p); err != nil {
		return p, fmt.Errorf("%w: %w", err, asynq.SkipRetry)
	}
	return p, nil
}
