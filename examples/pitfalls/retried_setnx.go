package main

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// A client library that has lost a reply sends its command again. SET NX then finds the key
// that it has set itself.
var retriedSetnx = pitfall{
	name: "SET NX, sent twice",
	lock: "the connection breaks after the server has executed it; the client library retries",

	byHand: func(ctx context.Context, l *lab) (string, bool, error) {
		rdb, breaks := l.breaking()
		defer rdb.Close()
		if err := rdb.Ping(ctx).Err(); err != nil {
			return "", false, err
		}
		breaks.Store(true)
		taken, err := rdb.SetNX(ctx, l.key("twice"), "A", time.Minute).Result()
		if err != nil || taken {
			return "A has the lock", false, err
		}
		owner, err := l.rdb.Get(ctx, l.key("twice")).Result()
		if owner == "A" {
			return "A is told that somebody has the lock: it is A, and nobody gets it for a minute", true, err
		}
		return "A is told the truth", false, err
	},

	holdfast: func(ctx context.Context, l *lab) (string, bool, error) {
		rdb, breaks := l.breaking()
		defer rdb.Close()
		locks, err := core.New(redislock.New(rdb))
		if err != nil {
			return "", false, err
		}
		defer locks.Close(ctx)
		if err := locks.Do(ctx, "twice", func(context.Context) error { return nil }); err != nil { // the server knows the script now
			return "", false, err
		}
		breaks.Store(true)
		lease, err := locks.TryAcquire(ctx, "twice")
		switch {
		case errors.Is(err, core.ErrHeld):
			return "A is told that somebody has the lock", true, nil
		case err != nil:
			return "", false, err
		case breaks.Load():
			return "", false, errors.New("no connection broke")
		}
		return "the claim says whose it is, so A has the lease", false, lease.Release(ctx)
	},
}

// breaking is a client, and what has the next reply to it lost, with its connection.
func (l *lab) breaking() (*redis.Client, *atomic.Bool) {
	breaks := new(atomic.Bool)
	dial := func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &breakingConn{conn, breaks}, nil
	}
	return redis.NewClient(&redis.Options{
		Addr:                     l.rdb.Options().Addr,
		Dialer:                   dial,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	}), breaks
}

type breakingConn struct {
	net.Conn

	breaks *atomic.Bool
}

func (c *breakingConn) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if err == nil && c.breaks.CompareAndSwap(true, false) {
		_ = c.Close()
		return 0, io.EOF
	}
	return n, err
}
