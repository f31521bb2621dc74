package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// However long the TTL: some day the work takes longer.
var shortTTL = pitfall{
	name: "work longer than the TTL",
	lock: "nobody renews; A's work takes longer than the TTL",

	byHand: func(ctx context.Context, l *lab) (string, bool, error) {
		key := l.key("ttl")
		a, err := l.rdb.SetNX(ctx, key, "A", time.Minute).Result()
		if err != nil {
			return "", false, err
		}
		l.runOut() // A works
		b, err := l.rdb.SetNX(ctx, key, "B", time.Minute).Result()
		if a && b {
			return "A and B work at the same time", true, err
		}
		return "only one of them works", false, err
	},

	holdfast: func(ctx context.Context, l *lab) (seen string, harm bool, err error) {
		const ttl = 2 * time.Second
		err = l.a.Do(ctx, "ttl", func(ctx context.Context) error {
			select {
			case <-ctx.Done():
				return context.Cause(ctx)
			case <-time.After(ttl + ttl/4): // A works
			}
			free, err := l.free(context.WithoutCancel(ctx), "ttl")
			harm = free
			return err
		}, core.WithTTL(ttl), core.WithRenewEvery(ttl/10))
		if harm {
			return "somebody else could have begun", true, err
		}
		return "the watchdog has renewed the lease; everybody else is refused", false, err
	},
}
