// Package examples_test compiles what the README shows.
package examples_test

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
	_ "github.com/holdfast-go/holdfast/examples/demo/shoppb" // registers shop.v1.Orders
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
	"github.com/holdfast-go/holdfast/taskmw"
)

func readme(ctx context.Context, rdb redis.UniversalClient, e *echo.Echo, cfg asynq.Config, mux *asynq.ServeMux) error {
	locks, err := core.New(redislock.New(rdb)) // any go-redis v9 client
	if err != nil {
		return err
	}

	// Echo: POST /orders/42/pay holds "order:42" while pay runs.
	e.POST("/orders/:id/pay", pay, echomw.Lock(locks, "order:{id}"))

	// gRPC: the same name, from a field of the request.
	srv := grpc.NewServer(grpcmw.ServerOptions(locks,
		grpcmw.WithMethod("/shop.v1.Orders/Refund", "order:{order.id}"))...)

	// asynq: the same name, from the payload. Contention is not a failure, and an order ships once.
	taskmw.Configure(&cfg)
	mux.Use(taskmw.Middleware(locks,
		taskmw.WithType("order:ship", "order:{order_id}", core.WithDedup(24*time.Hour))))

	// Anything else: fn's context ends with ctx, or when the lease is lost.
	err = locks.Do(ctx, "report:daily", func(ctx context.Context) error {
		fence, _ := core.FenceFromContext(ctx) // for the storage to refuse older holders
		return writeReport(ctx, fence)
	})
	srv.Stop()
	return err
}

func pay(c echo.Context) error                        { return c.NoContent(204) }
func writeReport(ctx context.Context, _ uint64) error { return ctx.Err() }

func TestTheReadmesSnippetIsThisCode(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("readme_test.go")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(text), "```go\n")
	snippet, _, closed := strings.Cut(rest, "```")
	if !found || !closed {
		t.Fatal("the README has no Go snippet")
	}
	if !strings.Contains(flat(string(code)), flat(snippet)) {
		t.Errorf("the README shows what is not in readme_test.go:\n%s", snippet)
	}
	if strings.Contains(rest[len(snippet)+3:], "```go") {
		t.Error("a second snippet that nothing compiles")
	}
}

// flat leaves out how far lines are indented.
func flat(code string) string {
	lines := strings.Split(code, "\n")
	for i := range lines {
		lines[i] = strings.TrimSpace(lines[i])
	}
	return strings.Join(lines, "\n")
}

func TestTheReadmesSnippetRuns(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: "127.0.0.1:1", MaxRetries: -1, DialerRetries: 1})
	defer func() { _ = rdb.Close() }()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	// There is no server at that address, which is not what the snippet is about.
	if err := readme(ctx, rdb, echo.New(), asynq.Config{}, asynq.NewServeMux()); err == nil || !strings.Contains(err.Error(), "unavailable") {
		t.Errorf("%v", err)
	}
}
