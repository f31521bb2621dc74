// Service is a whole service with Holdfast, to copy: Echo, gRPC and asynq exclude each other on one order. It has
// a readiness probe and metrics, and ends in good order when it gets SIGTERM.
//
//	redis-server &
//	go run ./examples/service
//	curl -i -X POST localhost:8080/orders/42/pay
//
// Stop it with Ctrl-C while a request runs, and send another one: the first is finished, the second gets
// 503 with Retry-After, and the exit status is 0.
//
// The environment: REDIS_URL (redis://localhost:6379), HTTP_ADDR (localhost:8080), GRPC_ADDR (localhost:9090), and
// WORK, which is how long each piece of work takes here (3s).
package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/hibiken/asynq"
	"github.com/labstack/echo/v4"
	"github.com/labstack/echo/v4/middleware"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/redis/go-redis/v9"
	"go.opentelemetry.io/otel/exporters/prometheus"
	sdkmetric "go.opentelemetry.io/otel/sdk/metric"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/core/telemetry"
	"github.com/holdfast-go/holdfast/examples/demo/shoppb"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
	"github.com/holdfast-go/holdfast/taskmw"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := run(ctx)
	cancel()
	if err != nil {
		slog.Error("the service has failed", slog.Any("error", err))
		os.Exit(1)
	}
}

// run serves until ctx ends, and then stops.
func run(ctx context.Context) error {
	opts, err := redis.ParseURL(cmp.Or(os.Getenv("REDIS_URL"), "redis://localhost:6379"))
	if err != nil {
		return fmt.Errorf("REDIS_URL: %w", err)
	}
	opts.DialerRetries = 1 // five dials, the default, delay each 503 of an outage by 2 s
	rdb := redis.NewClient(opts)
	locks, err := newLocks(rdb)
	if err != nil {
		return errors.Join(err, rdb.Close())
	}
	s, failed := &service{rdb: rdb, locks: locks}, make(chan error, 2)
	if s.work, err = time.ParseDuration(cmp.Or(os.Getenv("WORK"), "3s")); err == nil {
		err = locks.Ready(ctx) // a wrong password, a missing permission
	}
	if err == nil {
		err = s.start(ctx, failed)
	}
	if err == nil {
		select {
		case <-ctx.Done():
			slog.Info("stopping")
		case err = <-failed:
		}
	}
	return errors.Join(err, s.stop())
}

// newLocks is the one Locker of the process. Its events become metrics.
func newLocks(rdb *redis.Client) (*core.Locker, error) {
	exporter, err := prometheus.New()
	if err != nil {
		return nil, err
	}
	tel, err := telemetry.New(
		telemetry.WithMeterProvider(sdkmetric.NewMeterProvider(sdkmetric.WithReader(exporter))),
		telemetry.WithTemplates("order:{id|int}", "order:{order.id}", "order:{order_id}"))
	if err != nil {
		return nil, err
	}
	return core.New(redislock.New(rdb), tel.Option())
}

// service is all that stops together.
type service struct {
	shoppb.UnimplementedOrdersServer

	rdb     *redis.Client
	locks   *core.Locker
	work    time.Duration
	web     *http.Server
	rpc     *grpc.Server
	workers *asynq.Server
}

// start starts the servers. failed tells of one that ends by itself.
func (s *service) start(ctx context.Context, failed chan<- error) error {
	web, webErr := new(net.ListenConfig).Listen(ctx, "tcp", cmp.Or(os.Getenv("HTTP_ADDR"), "localhost:8080"))
	rpc, rpcErr := new(net.ListenConfig).Listen(ctx, "tcp", cmp.Or(os.Getenv("GRPC_ADDR"), "localhost:9090"))
	if err := errors.Join(webErr, rpcErr); err != nil {
		return err // of a process that ends
	}
	s.web = &http.Server{Handler: s.routes(), ReadHeaderTimeout: 5 * time.Second}
	s.rpc = grpc.NewServer(grpcmw.ServerOptions(s.locks,
		grpcmw.WithMethod(shoppb.Orders_Refund_FullMethodName, "order:{order.id}"))...)
	shoppb.RegisterOrdersServer(s.rpc, s)
	go func() { failed <- s.web.Serve(web) }()
	go func() { failed <- s.rpc.Serve(rpc) }()

	cfg := asynq.Config{ShutdownTimeout: 5 * time.Second, LogLevel: asynq.WarnLevel}
	taskmw.Configure(&cfg) // last, on a complete config: a lock that is held is not a failure of the task
	s.workers = asynq.NewServerFromRedisClient(s.rdb, cfg)
	tasks := asynq.NewServeMux()
	tasks.Use(taskmw.Middleware(s.locks, taskmw.WithType("order:ship", "order:{order_id}")))
	tasks.HandleFunc("order:ship", func(ctx context.Context, _ *asynq.Task) error { return s.takeTime(ctx) })
	slog.Info("ready", slog.String("http", web.Addr().String()), slog.String("grpc", rpc.Addr().String()))
	return s.workers.Start(tasks)
}

func (s *service) routes() http.Handler {
	e := echo.New()
	e.Use(middleware.Recover())
	e.GET("/metrics", echo.WrapHandler(promhttp.Handler()))
	e.GET("/readyz", func(c echo.Context) error { // no probe of liveness: a restart does not bring Redis back
		if err := s.locks.Ready(c.Request().Context()); err != nil {
			slog.Warn("not ready", slog.Any("error", err))
			return c.NoContent(http.StatusServiceUnavailable)
		}
		return c.NoContent(http.StatusNoContent)
	})
	e.POST("/orders/:id/pay", func(c echo.Context) error {
		if err := s.takeTime(c.Request().Context()); err != nil {
			return err // an error of core is answered as it should be
		}
		return c.String(http.StatusOK, "paid")
	}, middleware.ContextTimeout(10*time.Second), echomw.Lock(s.locks, "order:{id|int}"))
	return e
}

// Refund is the gRPC method. It excludes payment and shipment of the same order.
func (s *service) Refund(ctx context.Context, _ *shoppb.RefundRequest) (*shoppb.RefundReply, error) {
	if err := s.takeTime(ctx); err != nil {
		return nil, err
	}
	return &shoppb.RefundReply{Refunds: 1}, nil
}

// takeTime is the work. It ends with its context: the lock was lost, the caller has gone, or the process stops.
func (s *service) takeTime(ctx context.Context) error {
	select {
	case <-time.After(s.work):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// stop takes 24 s at most; Kubernetes gives 30. Each step has its own budget, so that the first cannot use up what
// the last one needs: nothing new comes in, what runs is finished, then the ground under it goes.
func (s *service) stop() error {
	var err error
	if s.workers != nil {
		s.workers.Stop() // fetches no more tasks
		// From here on /readyz and each route with a lock say 503. The servers still answer, so that clients and the
		// load balancer learn of it.
		err = within(10*time.Second, s.locks.Drain)
		err = errors.Join(err, within(3*time.Second, s.web.Shutdown), s.web.Close())
		unless := time.AfterFunc(2*time.Second, s.rpc.Stop)
		s.rpc.GracefulStop()
		unless.Stop()
		s.workers.Shutdown() // 5 s at most: tasks that still run go back into the queue
	}
	err = errors.Join(err, within(4*time.Second, s.locks.Close)) // work that still runs is told to stop
	return errors.Join(err, s.rdb.Close())
}

func within(d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return f(ctx)
}
