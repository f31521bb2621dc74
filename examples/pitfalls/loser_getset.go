package main

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// The same lock once more: whoever loses the race for a lock that is over has written its value
// all the same.
var loserGetset = pitfall{
	name: "GETSET by the loser",
	lock: "the value is when the lock ends; B and C both find it over, and B is first",

	byHand: func(ctx context.Context, l *lab) (string, bool, error) {
		key, now := l.key("loser"), time.Now()
		ends := func(after time.Duration) string { return strconv.FormatInt(now.Add(after).UnixMilli(), 10) }
		over := ends(-time.Second) // A has died
		if err := l.rdb.Set(ctx, key, over, 0).Err(); err != nil {
			return "", false, err
		}
		mine := ends(30 * time.Second)
		b, err := l.rdb.GetSet(ctx, key, mine).Result() //nolint:staticcheck // deprecated, and in every such article
		if err != nil || b != over {
			return "B does not get the lock", false, err
		}
		c, err := l.rdb.GetSet(ctx, key, ends(45*time.Second)).Result() //nolint:staticcheck // as above
		if err != nil || c == over {
			return "C has the lock too", true, err
		}
		value, err := l.rdb.Get(ctx, key).Result()
		if value != mine {
			return "C has lost, and moved the end of B's lock; B no longer knows it for its own, and does not unlock", true, err
		}
		return "B's lock is as B left it", false, err
	},

	holdfast: func(ctx context.Context, l *lab) (string, bool, error) {
		b, err := l.a.TryAcquire(ctx, "loser")
		if err != nil {
			return "", false, err
		}
		before, err := l.rdb.Get(ctx, l.prefix+"loser").Result()
		if err != nil {
			return "", false, err
		}
		ends := b.ValidUntil()
		_, refused := l.b.TryAcquire(ctx, "loser")
		after, err := l.rdb.Get(ctx, l.prefix+"loser").Result()
		if err != nil {
			return "", false, err
		}
		released := b.Release(ctx)
		if errors.Is(refused, core.ErrHeld) && after == before && b.ValidUntil().Equal(ends) && released == nil {
			return "who is refused has written nothing, and B unlocks", false, nil
		}
		return "who was refused has changed something", true, errors.Join(refused, released)
	},
}
