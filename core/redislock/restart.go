package redislock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
)

// RestartRule returns a function for redis.Options.OnConnect. With it, a client does not use a server that has been up
// for less than longest, the longest TTL of any lease. So a server that has lost its data at a restart grants
// nothing until everything that it has forgotten is over.
//
//	rdb := redis.NewClient(&redis.Options{Addr: addr, OnConnect: redislock.RestartRule(10 * time.Second)})
//
// It is meant for the nodes of package redlock, and for a single server that keeps nothing on disk. Every process
// must use it. It costs an INFO for each new connection: no connection outlives its server. A proxy that keeps
// connections for servers that have changed would break that. So would a server's clock that is set forward, since
// the server reckons by it. FLUSHALL is no restart.
//
// While the server is too young, commands fail, and nothing is executed. The client then needs the permission for
// INFO: without an answer, the server is not used.
func RestartRule(longest time.Duration) func(ctx context.Context, conn *redis.Conn) error {
	return func(ctx context.Context, conn *redis.Conn) error {
		info, err := conn.Info(ctx, "server").Result()
		if err != nil {
			return driver.NotSent(driver.Because(err, "RestartRule gets no answer to INFO, and does not use the server; it needs the permission +info"))
		}
		if up := uptime(info); up < longest {
			return driver.NotSent(driver.Unavailable(driver.Because(fmt.Errorf("%w: up for %s, less than %s", errYoung, max(0, up), longest),
				"the server has just started, and may have lost locks; RestartRule waits for the longest TTL")))
		}
		return nil
	}
}

var errYoung = errors.New("redislock: the server has just started")

// uptime is for how long the server that says this of itself has been up, at least: it says whole seconds. If it does
// not say, that is no time at all.
func uptime(info string) time.Duration {
	for line := range strings.Lines(info) {
		if digits, ok := strings.CutPrefix(strings.TrimSpace(line), "uptime_in_seconds:"); ok {
			seconds, err := strconv.ParseInt(digits, 10, 32)
			if err == nil {
				return time.Duration(seconds-1) * time.Second
			}
		}
	}
	return -time.Second
}
