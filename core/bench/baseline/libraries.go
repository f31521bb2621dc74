//go:build linux

package baseline

import (
	"context"
	"crypto/tls"
	"errors"
	"math"
	"net"
	"time"

	bsm "github.com/bsm/redislock"
	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/weather"
)

// pause is between two looks at a name that somebody else has, of those who poll.
const pause = 20 * time.Millisecond

// libraries are the others.
func libraries() map[string]weather.Opener {
	return map[string]weather.Opener{"redsync": openRedsync, "bsm/redislock": openBsm, "rueidislock": openRueidislock}
}

func dial(c weather.WorkerConfig) *redis.Client {
	return redis.NewClient(&redis.Options{
		Addr: c.Links[c.Servers[0]], ClientName: c.Life, PoolSize: 16, ContextTimeoutEnabled: true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
}

type redsyncs struct{ *redsync.Redsync }

func openRedsync(c weather.WorkerConfig) (l weather.Library, hangUp func(), err error) {
	rdb := dial(c)
	return redsyncs{redsync.New(goredis.NewPool(rdb))}, func() { _ = rdb.Close() }, nil
}

func (r redsyncs) Get(ctx context.Context, a weather.Ask) (weather.Lease, error) {
	m := r.NewMutex(weather.Prefix+a.Names[0], redsync.WithExpiry(weather.TTL), redsync.WithTries(math.MaxInt), redsync.WithRetryDelay(pause))
	lock := m.LockContext
	if a.Try {
		lock = m.TryLockContext
	}
	err := lock(ctx)
	if _, taken := errors.AsType[*redsync.ErrTaken](err); taken {
		return nil, errors.Join(core.ErrHeld, err)
	}
	if err != nil {
		return nil, err
	}
	extend := func(ctx context.Context) (time.Time, error) {
		ok, err := m.ExtendContext(ctx)
		return m.Until(), refused(ok, err)
	}
	return keep(m.Until(), extend, func(ctx context.Context) error { return refused(m.UnlockContext(ctx)) }), nil
}

func refused(ok bool, err error) error {
	if err == nil && !ok {
		err = errors.New("not the owner")
	}
	return err
}

func (redsyncs) Close(context.Context) error { return nil }

type bsms struct{ *bsm.Client }

func openBsm(c weather.WorkerConfig) (l weather.Library, hangUp func(), err error) {
	rdb := dial(c)
	return bsms{bsm.New(rdb)}, func() { _ = rdb.Close() }, nil
}

// Get polls by itself, as the library does, in order to know when the request began that got it.
func (b bsms) Get(ctx context.Context, a weather.Ask) (weather.Lease, error) {
	for {
		begin := time.Now()
		x, err := b.Obtain(ctx, weather.Prefix+a.Names[0], weather.TTL, nil)
		if err == nil {
			extend := func(ctx context.Context) (time.Time, error) {
				until := time.Now().Add(weather.TTL)
				return until, x.Refresh(ctx, weather.TTL, nil)
			}
			return keep(begin.Add(weather.TTL), extend, x.Release), nil
		}
		if !errors.Is(err, bsm.ErrNotObtained) {
			return nil, err
		}
		if a.Try {
			return nil, errors.Join(core.ErrHeld, err)
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (bsms) Close(context.Context) error { return nil }

type rueidislocks struct{ rueidislock.Locker }

func openRueidislock(c weather.WorkerConfig) (l weather.Library, hangUp func(), err error) {
	locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
		ClientOption: rueidis.ClientOption{
			InitAddress: c.Servers, ClientName: c.Life,
			DialCtxFn: func(ctx context.Context, addr string, d *net.Dialer, _ *tls.Config) (net.Conn, error) {
				return d.DialContext(ctx, "tcp", c.Links[addr])
			},
		},
		KeyPrefix: weather.Prefix, KeyMajority: 1, KeyValidity: weather.TTL, TryNextAfter: weather.TTL / 3,
	})
	return rueidislocks{locks}, func() {}, err
}

type rueidisLease struct {
	ctx context.Context
	end context.CancelFunc
}

func (r rueidislocks) Get(ctx context.Context, a weather.Ask) (weather.Lease, error) {
	lock := r.WithContext
	if a.Try {
		lock = r.TryWithContext
	}
	// The lock ends with the context that it was asked for with, which ours does not.
	own, cut := context.WithCancel(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, cut)
	held, end, err := lock(own, a.Names[0])
	stop()
	if errors.Is(err, rueidislock.ErrNotLocked) {
		err = errors.Join(core.ErrHeld, err)
	}
	if err != nil {
		cut()
		return nil, err
	}
	return rueidisLease{held, func() { end(); cut() }}, nil
}

func (r rueidislocks) Close(context.Context) error {
	r.Locker.Close()
	return nil
}

func (x rueidisLease) Context() context.Context { return x.ctx }
func (x rueidisLease) Err() error               { return x.ctx.Err() }
func (x rueidisLease) ValidUntil() time.Time    { return time.Now() } // it does not say
func (x rueidisLease) FenceOf(string) uint64    { return 0 }

func (x rueidisLease) Release(context.Context) error {
	x.end()
	return nil
}

func (x rueidisLease) Complete(ctx context.Context) error { return x.Release(ctx) }
