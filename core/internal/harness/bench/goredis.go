package main

import (
	"context"
	"net"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// client is the go-redis client of every contestant that uses one. Its pool is the default
// one, of ten connections for each core: more of them make everybody slower here.
func client(addr string, t *traffic) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: addr,
		Dialer: func(ctx context.Context, _, addr string) (net.Conn, error) {
			return t.dial(ctx, addr)
		},
		// A handshake that the server does not know.
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}
