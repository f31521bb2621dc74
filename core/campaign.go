package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Campaign keeps fn running in one process among many, for schedulers and other leaders. It waits
// for name as long as it takes, runs fn under the lease as [Locker.Do] does, and after a loss waits
// for the name again.
//
//	err := locks.Campaign(ctx, "scheduler", func(ctx context.Context) error {
//		return schedule(ctx) // until ctx ends: with the caller's, or because the lease is lost
//	}, core.WithLabel(hostname))
//
// If fn returns while its lease stands, the leader resigns: the name is released, the next waiter
// gets it at once, and Campaign returns what fn returned, nil too. When ctx ends, fn is told to
// stop, the name stays taken until fn has returned, and Campaign returns fn's result.
//
// A loss does not end the campaign, [WithMaxHold] included, and what fn returns after it is
// dropped. A lock service that does not answer does not end the campaign either; observers and the
// log are told. In both cases Campaign pauses for a third of the TTL, at most a second, less a
// random part of up to a quarter. One call of Campaign runs fn once at a time, but a paused holder
// can overlap with the next one: see [Lease.Fence].
//
// If fn was not running, Campaign returns ctx's error, as Acquire does, once ctx has ended;
// [ErrDraining] once the Locker drains, and [ErrClosed] once it is closed; [ErrInvalid] before anything
// is sent; and [ErrDuplicate] with [WithDedup]. A panic passes through after the release. [WithWait] has no effect: Campaign always
// waits.
func (l *Locker) Campaign(ctx context.Context, name string, fn func(context.Context) error, opts ...Option) error {
	if fn == nil {
		return invalidf("fn: nil")
	}
	cfg, err := l.resolve(slices.Concat(opts, []Option{WithWait(WaitForever)}))
	if err != nil {
		return err
	}
	cfg.campaigns = true
	patient := &Locker{l.engine, cfg.settled()}
	for {
		var x *Lease
		err := patient.Do(ctx, name, func(ctx context.Context) error {
			x = leaseOf(ctx)
			return fn(ctx)
		})
		// After a loss fn's error is dropped. It is mostly about the context that has ended, and a
		// leader must not stay away because its database has put that in other words. In Curator's
		// LeaderSelector a return ends the leadership in the same way, unless autoRequeue is on.
		// client-go's LeaderElector.Run and etcd's Election.Campaign leave the loop after a loss to
		// the caller.
		over := ctx.Err() != nil || !errors.Is(err, ErrUnavailable) || errors.Is(err, ErrDraining)
		if x == nil && over || x != nil && !x.lost() {
			return err
		}
		// With jitter, so that leaders do not all come back at once.
		patient.pause(ctx, jitter(driver.Recheck(cfg.TTL)))
	}
}

// pause waits for d. It returns earlier if ctx ends or the Locker is closed.
func (l *Locker) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-l.engine.accept.Done():
	}
}

// jitter takes up to a quarter off.
func jitter(d time.Duration) time.Duration {
	return d - rand.N(d/4+1) //nolint:gosec // G404: jitter is no secret
}
