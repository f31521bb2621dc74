package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"github.com/hibiken/asynq"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/examples/demo/shoppb"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
	"github.com/holdfast-go/holdfast/taskmw"
)

// service is all that stops together.
type service struct {
	config
	shoppb.UnimplementedOrdersServer

	rdb       *redis.Client
	locks     *core.Locker
	web       *http.Server
	rpc       *grpc.Server
	workers   *asynq.Server
	tasks     *asynq.ServeMux
	scheduler *asynq.Scheduler

	webAt, rpcAt net.Addr
}

// The life of a request or call: longer than the work, and shorter than what a stop takes.
const requestTimeout = 10 * time.Second

func newService(ctx context.Context, c config, rdb *redis.Client) (*service, error) {
	if err := rdb.Ping(ctx).Err(); err != nil {
		return nil, fmt.Errorf("no Redis at %s: %w", c.redis, err)
	}
	locks, err := core.New(redislock.New(rdb, redislock.WithPrefix(c.queue+":")))
	if err != nil {
		return nil, err
	}
	s := &service{config: c, rdb: rdb, locks: locks}
	s.rpc = grpc.NewServer(grpcmw.ServerOptions(locks,
		grpcmw.WithMethod(shoppb.Orders_Refund_FullMethodName, "order:{order.id}"))...)
	shoppb.RegisterOrdersServer(s.rpc, s)
	s.web = &http.Server{Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second}
	s.background()
	return s, nil
}

// routes are those of the web server.
func (s *service) routes() http.Handler {
	e := echo.New()
	e.Use(middleware.Recover(), middleware.ContextTimeout(requestTimeout))
	e.GET("/ready", func(c echo.Context) error { // the load balancer asks
		if s.locks.Draining() {
			return c.NoContent(http.StatusServiceUnavailable)
		}
		return c.NoContent(http.StatusNoContent)
	})
	e.POST("/orders/:id/pay", func(c echo.Context) error {
		if err := s.do(c.Request().Context(), "stock:"+c.Param("id")); err != nil {
			return err // an error of core is answered as it should be
		}
		return c.String(http.StatusOK, "paid")
	}, echomw.Lock(s.locks, "order:{id|int}"))
	return e
}

// Refund is the gRPC method. It excludes paying and shipping of the same order.
func (s *service) Refund(ctx context.Context, r *shoppb.RefundRequest) (*shoppb.RefundReply, error) {
	if err := s.do(ctx, fmt.Sprint("stock:", r.GetOrder().GetId())); err != nil {
		return nil, err
	}
	return &shoppb.RefundReply{Refunds: 1}, nil
}

// background makes the workers and the cron job.
func (s *service) background() {
	cfg := asynq.Config{
		Queues: map[string]int{s.queue: 1}, LogLevel: asynq.FatalLevel,
		TaskCheckInterval: 100 * time.Millisecond, ShutdownTimeout: workersBudget,
	}
	taskmw.Configure(&cfg) // last
	s.workers = asynq.NewServerFromRedisClient(s.rdb, cfg)
	s.tasks = asynq.NewServeMux()
	s.tasks.Use(taskmw.Middleware(s.locks,
		taskmw.WithType("order:ship", "order:{order_id}"),
		// Every node enqueues the job, and one of them runs it: see docs/guides/jobs.md.
		taskmw.WithType("report", "cron:report", taskmw.OnConflict(taskmw.Skip), core.WithMinHold(30*time.Second))))
	s.tasks.HandleFunc("order:ship", func(ctx context.Context, _ *asynq.Task) error { return s.takeTime(ctx) })
	s.tasks.HandleFunc("report", func(ctx context.Context, _ *asynq.Task) error { return ctx.Err() })
	s.scheduler = asynq.NewSchedulerFromRedisClient(s.rdb, &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel})
}

// start starts everything. The channel tells of a server that ends by itself.
func (s *service) start(ctx context.Context) (failed <-chan error, err error) {
	web, err := new(net.ListenConfig).Listen(ctx, "tcp", s.config.web)
	if err != nil {
		return nil, err
	}
	rpc, err := new(net.ListenConfig).Listen(ctx, "tcp", s.config.rpc)
	if err != nil {
		return nil, errors.Join(err, web.Close())
	}
	s.webAt, s.rpcAt = web.Addr(), rpc.Addr()
	ended := make(chan error, 2)
	go func() {
		if err := s.web.Serve(web); !errors.Is(err, http.ErrServerClosed) {
			ended <- err
		}
	}()
	go func() {
		if err := s.rpc.Serve(rpc); err != nil {
			ended <- err
		}
	}()
	if err := s.workers.Start(s.tasks); err != nil {
		return nil, err
	}
	if _, err := s.scheduler.Register("* * * * *", asynq.NewTask("report", nil), asynq.Queue(s.queue)); err != nil {
		return nil, err
	}
	return ended, s.scheduler.Start()
}

// do is the work of a request: the second half of it under another lock too.
func (s *service) do(ctx context.Context, stock string) error {
	if err := s.takeTime(ctx); err != nil {
		return err
	}
	return s.locks.Do(ctx, stock, func(context.Context) error { return nil })
}

// takeTime takes its time, unless it is told to stop.
func (s *service) takeTime(ctx context.Context) error {
	timer := time.NewTimer(s.work)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
