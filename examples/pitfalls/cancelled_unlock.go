package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// The client has gone, so the request's context has ended, and the deferred unlock runs
// with it.
var cancelledUnlock = pitfall{
	name: "unlock in an ended context",
	lock: "defer unlock(ctx), and the caller goes away",

	byHand: func(ctx context.Context, l *lab) (string, bool, error) {
		key := l.key("cancel")
		unlock := func(ctx context.Context) { _ = l.rdb.Del(ctx, key).Err() } // who reads this error?
		request, gone := context.WithCancel(ctx)
		defer gone()
		err := func() error {
			if err := l.rdb.SetNX(request, key, "A", time.Minute).Err(); err != nil {
				return err
			}
			defer unlock(request)
			gone()
			return nil
		}()
		if err != nil {
			return "", false, err
		}
		left, err := l.rdb.PTTL(ctx, key).Result()
		if left > 0 {
			return fmt.Sprintf("nobody works, and the lock is taken for another %v", left.Round(time.Second)), true, err
		}
		return "the lock is free", false, err
	},

	holdfast: func(ctx context.Context, l *lab) (string, bool, error) {
		request, gone := context.WithCancel(ctx)
		defer gone()
		err := l.a.Do(request, "cancel", func(ctx context.Context) error {
			gone()
			return ctx.Err()
		})
		if !errors.Is(err, context.Canceled) {
			return "", false, err
		}
		free, err := l.free(ctx, "cancel")
		if !free {
			return "the lock is still taken", true, err
		}
		return "the lock is free: the release has a context of its own", false, err
	},
}
