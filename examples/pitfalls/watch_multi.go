package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// A transaction around the DEL looks safe. But WATCH only guards from here on: that the
// lock has changed hands before is what nobody asks.
var watchMulti = pitfall{
	name: "WATCH, MULTI, DEL",
	lock: "a transaction that does not ask who the owner is; A's lock ran out, B has it",

	byHand: func(ctx context.Context, l *lab) (string, bool, error) {
		key := l.key("watch")
		lock := func(owner string) error { return l.rdb.SetNX(ctx, key, owner, time.Minute).Err() }
		unlock := func() error {
			return l.rdb.Watch(ctx, func(tx *redis.Tx) error {
				_, err := tx.TxPipelined(ctx, func(p redis.Pipeliner) error { return p.Del(ctx, key).Err() })
				return err
			}, key)
		}
		return byHandOvertaken(ctx, l, key, lock, unlock)
	},

	holdfast: func(ctx context.Context, l *lab) (string, bool, error) {
		return releaseOfALostLease(ctx, l, "watch")
	},
}
