package main

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// poolSize is enough for every goroutine of the scenarios with 64, and more connections make
// those with more goroutines slower.
const poolSize = 64

// client is the go-redis client of every contestant that uses one.
func client(addr string, t *traffic) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr:     addr,
		PoolSize: poolSize,
		Dialer: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return t.dial(ctx, addr)
		},
		// A handshake that the server does not know.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}
