package main

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// The owner is compared, but by the client: between its GET and its DEL the lock can change
// hands.
var getDel = pitfall{
	name: "GET, compare, DEL",
	lock: "the owner is compared in one command and the key deleted in the next; A's lock runs out in between",

	byHand: func(ctx context.Context, l *lab) (string, bool, error) {
		key := l.key("getdel")
		take := func(owner string) error { return l.rdb.SetNX(ctx, key, owner, time.Minute).Err() }
		if err := take("A"); err != nil {
			return "", false, err
		}
		owner, err := l.rdb.Get(ctx, key).Result()
		if err != nil || owner != "A" {
			return "A does not unlock", false, err
		}
		l.runOut()
		if err := take("B"); err != nil {
			return "", false, err
		}
		if err := l.rdb.Del(ctx, key).Err(); err != nil { // what A's GET has allowed
			return "", false, err
		}
		if err := l.rdb.Get(ctx, key).Err(); err == redis.Nil { //nolint:errorlint // go-redis returns it as it is
			return "A has freed the lock of B, who still works", true, nil
		}
		return "B's lock stands", false, nil
	},

	holdfast: func(ctx context.Context, l *lab) (string, bool, error) {
		return releaseOfALostLease(ctx, l, "getdel")
	},
}
