package bench

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	bsmlock "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

// The other libraries, by name.
var waitingPeers = []string{"bsm", "redsync", "rueidislock"}

func peers() []contestant {
	return []contestant{{
		name: "bsm", settings: "bsm/redislock, LinearBackoff(10 ms)", peer: true,
		open: func(addr string, t *traffic) (locker, error) {
			rdb := client(addr, t)
			return &bsm{rdb, bsmlock.New(rdb)}, nil
		},
	}, {
		name: "redsync", settings: "redsync on one server through its go-redis pool, WithExpiry(10 s), default pauses (50 to 250 ms)", peer: true,
		open: func(addr string, t *traffic) (locker, error) {
			rdb := client(addr, t)
			return &redsyncLocker{rdb, redsync.New(goredis.NewPool(rdb))}, nil
		},
	}, {
		// Without NoLoopTracking each renewal invalidates the key for its own client, which then renews again. With 10,000 leases it
		// loses many, and takes a minute to release the others.
		name: "rueidislock", settings: "rueidislock on its own client, KeyMajority 1, KeyValidity 10 s, TryNextAfter 1 s, NoLoopTracking on",
		peer: true, renewEvery: ttl / 2, open: openRueidislock,
	}}
}

type bsm struct {
	rdb   *redis.Client
	locks *bsmlock.Client
}

func (b *bsm) lock(ctx context.Context, name string) (lease, error) {
	opt := &bsmlock.Options{RetryStrategy: bsmlock.LinearBackoff(10 * time.Millisecond)}
	for {
		x, err := b.locks.Obtain(ctx, "bsm:"+name, ttl, opt)
		if errors.Is(err, context.DeadlineExceeded) && ctx.Err() == nil {
			continue // it waits for one TTL at most
		}
		return x, err
	}
}

func (b *bsm) close(context.Context) error { return b.rdb.Close() }

type redsyncLocker struct {
	rdb   *redis.Client
	locks *redsync.Redsync
}

type redsyncLease struct{ *redsync.Mutex }

func (r *redsyncLocker) lock(ctx context.Context, name string) (lease, error) {
	x := redsyncLease{r.locks.NewMutex("redsync:"+name, redsync.WithExpiry(ttl))}
	for {
		err := x.LockContext(ctx)
		if _, taken := errors.AsType[*redsync.ErrTaken](err); taken && ctx.Err() == nil {
			continue // it gives up after so many tries
		}
		return x, err
	}
}

func (x redsyncLease) Release(ctx context.Context) error {
	ok, err := x.UnlockContext(ctx)
	if err == nil && !ok {
		err = errNotOwner
	}
	return err
}

func (r *redsyncLocker) close(context.Context) error { return r.rdb.Close() }

func openRueidislock(addr string, t *traffic) (locker, error) {
	locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{
			InitAddress: []string{addr},
			DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return t.dial(ctx, "tcp", addr)
			},
		},
		KeyMajority: 1,
		KeyValidity: ttl,
		// By default an attempt is given up after 20 ms, which a busy machine takes, and with NoLoopTracking nothing then wakes its
		// caller.
		TryNextAfter:   10 * time.Second,
		NoLoopTracking: true,
	})
	return &rueidislockLocker{locks}, err
}

type rueidislockLocker struct{ locks rueidislock.Locker }

type rueidislockLease struct {
	ctx    context.Context
	cancel context.CancelFunc
}

func (r *rueidislockLocker) lock(ctx context.Context, name string) (lease, error) {
	held, cancel, err := r.locks.WithContext(ctx, name)
	return &rueidislockLease{held, cancel}, err
}

// Release returns when the server has answered. It tells no errors.
func (x *rueidislockLease) Release(context.Context) error {
	x.cancel()
	return nil
}

func (x *rueidislockLease) Err() error { return x.ctx.Err() }

func (r *rueidislockLocker) close(context.Context) error {
	r.locks.Close()
	return nil
}
