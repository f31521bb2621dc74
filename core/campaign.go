package core

import (
	"context"
	"errors"
	"slices"
	"time"
)

// Campaign keeps fn running in one process among many: it waits for name, for as long as it
// takes, runs fn under the lease as [Locker.Do] does, and after a loss waits for the name
// again. It is Do in a loop, for schedulers and other leaders.
//
//	err := locks.Campaign(ctx, "scheduler", func(ctx context.Context) error {
//		return schedule(ctx) // until ctx ends: with the caller's, or because the lease is lost
//	}, core.WithLabel(hostname))
//
// To return is to resign: what fn returns while its lease stands ends the campaign and is
// returned as it is, nil too. The name is free by then, and goes to the next in line at once.
// Whoever wants to run again calls Campaign again. When ctx ends, fn is told to stop, the name
// stays taken until it has returned, and its result is the campaign's.
//
// A loss, [WithMaxHold] included, does not end the campaign. What fn returns after one is
// dropped: it is mostly about the context that ended, and a leader must not stay away because
// its database said so in words of its own. Code that has more to say logs it. fn runs once at
// a time in one call of Campaign, but a holder that is paused can overlap with the next one;
// see [Lease.Fence].
//
// A lock service that does not answer does not end it either: observers and the log are told,
// and Campaign goes on. After that and after a loss it pauses for a third of the TTL, at most
// a second, less up to a quarter of that at random, so that leaders do not all come back at
// once.
//
// If fn was not running, it returns ctx's error, as Acquire does, once ctx has ended;
// [ErrClosed] once the Locker is closed; [ErrInvalid], before anything is sent; and [ErrDuplicate],
// with [WithDedup]. A panic passes through after the release. [WithWait] and [OnUnavailable] do
// nothing here: it waits, and there is no leader while the lock service cannot answer.
//
// Curator's LeaderSelector means the same by a return, unless autoRequeue is on; client-go's
// LeaderElector.Run and etcd's Election.Campaign leave the loop after a loss to the caller.
func (l *Locker) Campaign(ctx context.Context, name string, fn func(context.Context) error, opts ...Option) error {
	if fn == nil {
		return invalidf("fn: nil")
	}
	cfg, err := l.resolve(slices.Concat(opts, []Option{WithWait(WaitForever), OnUnavailable(FailClosed)}))
	if err != nil {
		return err
	}
	patient := newLocker(l.engine, cfg)
	for {
		var x *Lease
		err := patient.Do(ctx, name, func(ctx context.Context) error {
			x, _ = FromContext(ctx)
			return fn(ctx)
		})
		if x == nil && (ctx.Err() != nil || !errors.Is(err, ErrUnavailable)) || x != nil && !x.lost() {
			return err
		}
		patient.pause(ctx, jitter(cfg.recheck()))
	}
}

// pause waits for d, or until waiting makes no sense any more.
func (l *Locker) pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-l.engine.closing:
	}
}
