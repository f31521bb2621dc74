package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// brief is the TTL of a lease that a scene waits for the end of.
const brief = 250 * time.Millisecond

// lab is a Redis server and two processes, A and B, with a Locker each.
type lab struct {
	rdb    *redis.Client
	server *miniredis.Miniredis // nil with a real server
	prefix string
	a, b   *core.Locker
}

func newLab(ctx context.Context, address string) (*lab, error) {
	l := &lab{prefix: fmt.Sprintf("pitfalls:%d-%d:", os.Getpid(), time.Now().UnixNano())}
	if address == "" {
		l.server = miniredis.NewMiniRedis()
		l.server.ClockTTL(true)
		if err := l.server.Start(); err != nil {
			return nil, err
		}
		address = l.server.Addr()
	}
	l.rdb = redis.NewClient(&redis.Options{
		Addr:                     address,
		DialerRetries:            1,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	err := l.rdb.Ping(ctx).Err()
	if err == nil {
		l.a, err = core.New(redislock.New(l.rdb, redislock.WithPrefix(l.prefix)))
	}
	if err == nil {
		l.b, err = core.New(redislock.New(l.rdb, redislock.WithPrefix(l.prefix)))
	}
	if err != nil {
		l.close(ctx)
		return nil, err
	}
	return l, nil
}

// close leaves a real server as it was.
func (l *lab) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	for _, locks := range []*core.Locker{l.a, l.b} {
		if locks != nil {
			_ = locks.Close(ctx)
		}
	}
	_ = l.forget(ctx)
	_ = l.rdb.Close()
	if l.server != nil {
		l.server.Close()
	}
}

// forget has the server lose all that it knows of this lab.
func (l *lab) forget(ctx context.Context) error {
	for _, pattern := range []string{l.prefix + "*", "{" + l.prefix + "*"} {
		keys := l.rdb.Scan(ctx, 0, pattern, 1000).Iterator()
		for keys.Next(ctx) {
			if err := l.rdb.Del(ctx, keys.Val()).Err(); err != nil {
				return err
			}
		}
		if err := keys.Err(); err != nil {
			return err
		}
	}
	return nil
}

// key is where the lock by hand lives.
func (l *lab) key(name string) string { return l.prefix + "byhand:" + name }

// runOut lets the rest of a key's time pass, and returns once the server has dropped it. It
// shortens that time: a scene shall depend on no clock.
func (l *lab) runOut(ctx context.Context, key string) error {
	if err := l.rdb.PExpire(ctx, key, time.Millisecond).Err(); err != nil {
		return err
	}
	for {
		n, err := l.rdb.Exists(ctx, key).Result()
		if err != nil || n == 0 {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// overtaken is the beginning of a scene: A holds the name and hangs for longer than its
// lease, and B has it now.
func (l *lab) overtaken(ctx context.Context, name string) (a, b *core.Lease, err error) {
	a, err = l.a.Acquire(ctx, name, core.WithTTL(brief), core.WithoutRenewal())
	if err != nil {
		return nil, nil, err
	}
	b, err = l.b.Acquire(ctx, name)
	return a, b, err
}

// free says whether a third process could take the name now.
func (l *lab) free(ctx context.Context, name string) (bool, error) {
	third, err := core.New(redislock.New(l.rdb, redislock.WithPrefix(l.prefix)))
	if err != nil {
		return false, err
	}
	defer third.Close(ctx)
	lease, err := third.TryAcquire(ctx, name)
	if errors.Is(err, core.ErrHeld) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return true, lease.Release(ctx)
}
