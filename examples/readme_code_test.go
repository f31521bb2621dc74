package examples_test

import (
	"context"
	"time"

	"github.com/hibiken/asynq"
	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
	"github.com/holdfast-go/holdfast/taskmw"
)

// What follows is the code of README.md and README.zh-CN.md; readme_test.go compares them.

func readme(ctx context.Context, e *echo.Echo, cfg asynq.Config, mux *asynq.ServeMux) error {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"}) // or Sentinel, Cluster: any go-redis v9 client
	locks, err := core.New(redislock.New(rdb))                     // one for the process
	if err != nil {
		return err
	}

	// Echo: POST /orders/42/pay holds "order:42" while pay runs.
	e.POST("/orders/:id/pay", pay, echomw.Lock(locks, "order:{id}"))

	// gRPC: the same name, from a field of the request.
	srv := grpc.NewServer(grpcmw.ServerOptions(locks,
		grpcmw.WithMethod("/shop.v1.Orders/Refund", "order:{order.id}"))...)

	// asynq: the same name, from the payload. Contention is not a failure, and an order ships once.
	taskmw.Configure(&cfg) // before asynq.NewServer(redisOpt, cfg)
	mux.Use(taskmw.Middleware(locks,
		taskmw.WithType("order:ship", "order:{order_id}", core.WithDedup(24*time.Hour))))

	// Anything else. Do waits as long as ctx; fn's context ends with ctx, or when the lease is lost.
	err = locks.Do(ctx, "report:daily", func(ctx context.Context) error {
		fence, _ := core.FenceFor(ctx, "report:daily") // for the storage to refuse older holders
		return writeReport(ctx, fence)
	})
	srv.Stop()
	_ = rdb.Close()
	return err
}

func readmeEnd(ctx context.Context, locks *core.Locker) error {
	err := locks.Close(ctx) // after the servers: waits for work that still runs
	return err
}

var orderKey = key.MustParse("order:{id}")

func orderName(_ context.Context, r *refundRequest) (string, error) { return orderKey.Name(r.OrderID) }

func readmeWrap(locks *core.Locker) func(context.Context, *refundRequest) (*refundReply, error) {
	// A function of your own: refund holds "order:42" like the doors do, and waits for it 2 s at most.
	locked := core.Wrap(locks, orderName, refund, core.WithWait(2*time.Second))
	return locked
}

type (
	refundRequest struct{ OrderID string }
	refundReply   struct{}
)

func refund(context.Context, *refundRequest) (*refundReply, error) { return new(refundReply), nil }
func pay(c echo.Context) error                                     { return c.NoContent(204) }
func writeReport(ctx context.Context, _ uint64) error              { return ctx.Err() }
