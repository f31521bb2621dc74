package main

import (
	"context"
	"errors"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// brief is the TTL of a lease that a scene waits for the end of.
const brief = 250 * time.Millisecond

// lab is a Redis server and two processes, A and B, with a Locker each.
type lab struct {
	server *miniredis.Miniredis
	rdb    *redis.Client
	a, b   *core.Locker
}

func newLab() (*lab, error) {
	server, err := miniredis.Run()
	if err != nil {
		return nil, err
	}
	server.ClockTTL(true)
	rdb := redis.NewClient(&redis.Options{Addr: server.Addr()})
	a, errA := core.New(redislock.New(rdb))
	b, errB := core.New(redislock.New(rdb))
	return &lab{server, rdb, a, b}, errors.Join(errA, errB)
}

func (l *lab) close(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	_ = errors.Join(l.a.Close(ctx), l.b.Close(ctx), l.rdb.Close()) // a scene has left what its dead process held
	l.server.Close()
}

// key is where the lock by hand lives.
func (l *lab) key(name string) string { return "byhand:" + name }

// runOut lets a minute pass at the server, which is the TTL of all locks by hand.
func (l *lab) runOut() { l.server.FastForward(time.Minute) }

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
	third, err := core.New(redislock.New(l.rdb))
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
