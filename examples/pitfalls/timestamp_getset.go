package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// The value is the time at which the lock ends, by the clock of whoever took it; whoever
// finds it over, by his own clock, takes it with GETSET. So two clocks decide.
var timestampGetset = pitfall{
	name: "SETNX, timestamp, GETSET",
	lock: "the value is when the lock ends; B's clock is a minute ahead of A's",

	byHand: func(ctx context.Context, l *lab) (string, bool, error) {
		lock := func(now time.Time) (bool, error) {
			ends := strconv.FormatInt(now.Add(30*time.Second).UnixMilli(), 10)
			first, err := l.rdb.SetNX(ctx, l.key("clock"), ends, 0).Result()
			if first || err != nil {
				return first, err
			}
			old, err := l.rdb.Get(ctx, l.key("clock")).Result()
			if at, _ := strconv.ParseInt(old, 10, 64); err != nil || at > now.UnixMilli() {
				return false, err
			}
			before, err := l.rdb.GetSet(ctx, l.key("clock"), ends).Result() //nolint:staticcheck // deprecated, and in every such article
			return before == old, err
		}
		a, err := lock(time.Now())
		if err != nil {
			return "", false, err
		}
		b, err := lock(time.Now().Add(time.Minute))
		if a && b {
			return "A and B hold the lock, A for 30 s more", true, err
		}
		return "only one of them holds the lock", false, err
	},

	// No client's clock goes to the server, or is compared with another's: the server counts
	// the milliseconds of a TTL down by itself. So there is nothing that B's clock could do.
	holdfast: func(ctx context.Context, l *lab) (string, bool, error) {
		a, err := l.a.TryAcquire(ctx, "clock")
		if err != nil {
			return "", false, err
		}
		defer a.Release(ctx)
		left, err := l.rdb.PTTL(ctx, "holdfast:clock").Result()
		if err != nil || left <= 0 || left > 10*time.Second {
			return "the lock's TTL is not the server's to count", true, err
		}
		_, err = l.b.TryAcquire(ctx, "clock")
		if errors.Is(err, core.ErrHeld) {
			return "B is refused: the server counts the TTL, and reads no client's clock", false, nil
		}
		return "B was not refused", true, err
	},
}
