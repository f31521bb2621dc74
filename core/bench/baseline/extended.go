//go:build linux

package baseline

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/weather"
)

// extended is a lock of a library without a watchdog, with the one that an application writes.
type extended struct {
	ctx     context.Context
	end     context.CancelFunc
	until   atomic.Int64 // in ns
	extend  func(ctx context.Context) (until time.Time, err error)
	release func(ctx context.Context) error
	over    chan struct{} // closed when the watchdog has ended
}

func keep(until time.Time, extend func(context.Context) (time.Time, error), release func(context.Context) error) *extended {
	ctx, end := context.WithCancel(context.Background())
	x := &extended{ctx: ctx, end: end, extend: extend, release: release, over: make(chan struct{})}
	x.until.Store(until.UnixNano())
	go x.watch()
	return x
}

func (x *extended) watch() {
	defer close(x.over)
	const period = weather.TTL / 3
	tick := time.NewTicker(period)
	defer tick.Stop()
	for {
		last := time.NewTimer(time.Until(x.ValidUntil()))
		select {
		case <-x.ctx.Done():
			last.Stop()
			return
		case <-last.C:
			x.end()
			return
		case <-tick.C:
			last.Stop()
		}
		ctx, cancel := context.WithTimeout(x.ctx, min(period, time.Until(x.ValidUntil())))
		until, err := x.extend(ctx)
		cancel()
		if err == nil && until.After(x.ValidUntil()) {
			x.until.Store(until.UnixNano())
		}
	}
}

func (x *extended) Context() context.Context { return x.ctx }
func (x *extended) ValidUntil() time.Time    { return time.Unix(0, x.until.Load()) }
func (x *extended) FenceOf(string) uint64    { return 0 }

func (x *extended) Err() error {
	if err := x.ctx.Err(); err != nil {
		return err
	}
	if time.Now().After(x.ValidUntil()) {
		return context.DeadlineExceeded
	}
	return nil
}

func (x *extended) Release(ctx context.Context) error {
	x.end()
	<-x.over
	return x.release(ctx)
}

func (x *extended) Complete(ctx context.Context) error { return x.Release(ctx) }
