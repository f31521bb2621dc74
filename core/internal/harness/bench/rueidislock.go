package main

import (
	"context"
	"crypto/tls"
	"net"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

func rueidislocks() []contestant {
	return []contestant{
		newRueidislock("rueidislock", false),
		newRueidislock("rueidislock noloop", true),
	}
}

func newRueidislock(name string, noLoop bool) contestant {
	tracking := "off"
	if noLoop {
		tracking = "on"
	}
	return contestant{
		name:       name,
		settings:   "rueidislock on its own client, KeyMajority 1, KeyValidity 10 s, TryNextAfter 1 s, NoLoopTracking " + tracking,
		prefix:     "rueidislock:",
		peer:       true,
		renewEvery: ttl / 2,
		open: func(addr string, t *traffic) (locker, error) {
			locks, err := rueidislock.NewLocker(rueidislock.LockerOption{
				ClientOption: rueidis.ClientOption{
					InitAddress: []string{addr},
					DialCtxFn: func(ctx context.Context, addr string, _ *net.Dialer, _ *tls.Config) (net.Conn, error) {
						return t.dial(ctx, addr)
					},
				},
				KeyMajority: 1,
				KeyValidity: ttl,
				// By default an attempt is given up after 20 ms, which a busy machine takes, and with
				// NoLoopTracking nothing then wakes its caller.
				TryNextAfter:   time.Second,
				NoLoopTracking: noLoop,
			})
			return &rueidislockLocker{locks}, err
		},
	}
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
