package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Two commands, and a process that ends between them.
var setnxThenExpire = pitfall{
	name: "SETNX, then EXPIRE",
	lock: "two commands; A is killed between them",

	byHand: func(ctx context.Context, l *lab) (string, bool, error) {
		lock := func(killed bool) (bool, error) {
			first, err := l.rdb.SetNX(ctx, l.key("expire"), "A", 0).Result()
			if !first || err != nil || killed {
				return first, err
			}
			return l.rdb.PExpire(ctx, l.key("expire"), time.Minute).Result()
		}
		if _, err := lock(true); err != nil {
			return "", false, err
		}
		left, err := l.rdb.PTTL(ctx, l.key("expire")).Result()
		if err != nil {
			return "", false, err
		}
		b, err := lock(false)
		if !b && left == -1 { // no TTL
			return "the key has no TTL: nobody will ever get the lock again", true, err
		}
		return "the lock comes free", false, err
	},

	holdfast: func(ctx context.Context, l *lab) (string, bool, error) {
		// A takes the name in one step with its TTL, and is never heard of again.
		if _, err := l.a.Acquire(ctx, "expire", core.WithTTL(brief), core.WithoutRenewal()); err != nil {
			return "", false, err
		}
		bounded, cancel := context.WithTimeout(ctx, 20*time.Second)
		defer cancel()
		b, err := l.b.Acquire(bounded, "expire")
		if err != nil {
			return "B never got the lock: " + err.Error(), true, nil
		}
		return "B has the lock one TTL after A's death", false, b.Release(ctx)
	},
}
