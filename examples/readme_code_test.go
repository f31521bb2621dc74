package examples_test

import (
	"context"
	"net/http"

	"github.com/labstack/echo/v4"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/httpmw/echomw"
)

// What follows is the code of README.md and README.zh-CN.md; readme_test.go compares them.

func readme(e *echo.Echo) error {
	rdb := redis.NewClient(&redis.Options{Addr: "localhost:6379"}) // or Sentinel, Cluster: any go-redis v9 client
	locks, err := core.New(redislock.New(rdb))                     // one for the whole process
	if err != nil {
		return err
	}
	e.POST("/orders/:id/pay", pay, echomw.Lock(locks, "order:{id|int}")) // POST /orders/42/pay holds "order:42"

	_ = rdb.Close()
	return err
}

func pay(c echo.Context) error {
	ctx := c.Request().Context()      // ends when the lock is lost, so do the work with it
	lease, _ := core.FromContext(ctx) // its fence lets your database refuse older holders
	if err := charge(ctx, c.Param("id"), lease.Fence()); err != nil {
		return err
	}
	return c.NoContent(http.StatusNoContent)
}

// charge stands for the work.
func charge(ctx context.Context, _ string, _ uint64) error { return ctx.Err() }
