package main

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Redis answers before its replicas know. If the master dies in between, the replica that takes
// over has never heard of the lock.
var lostMaster = pitfall{
	name: "the master is lost",
	lock: "A's lock was not replicated yet; the new master gives it to B",

	byHand: func(ctx context.Context, l *lab) (string, bool, error) {
		var file store
		key := l.key("master")
		a, err := l.rdb.SetNX(ctx, key, "A", time.Minute).Result()
		if err != nil {
			return "", false, err
		}
		l.server.FlushAll() // what the new master knows
		b, err := l.rdb.SetNX(ctx, key, "B", time.Minute).Result()
		if err != nil || !a || !b {
			return "only one of them has the lock", false, err
		}
		file.write("B's")
		file.write("A's")
		return "both hold the lock, and A's write has replaced B's", file.text == "A's", nil
	},

	// No lock on one master can prevent that there are two. What is behind it can refuse one: the
	// fence is no smaller than the server's clock, so it grows though the counter was lost, too.
	holdfast: func(ctx context.Context, l *lab) (string, bool, error) {
		var file store
		a, err := l.a.TryAcquire(ctx, "master")
		if err != nil {
			return "", false, err
		}
		l.server.FlushAll()
		b, err := l.b.TryAcquire(ctx, "master")
		if err != nil {
			return "", false, err
		}
		defer b.Release(ctx)
		if err := file.fenced(b.Fence(), "B's"); err != nil {
			return "", false, err
		}
		late, told := file.fenced(a.Fence(), "A's"), a.Release(ctx)
		if errors.Is(late, errOld) && errors.Is(told, core.ErrLost) {
			return "A's write is refused, as B's fence is larger; A's release says that the lease was lost", false, nil
		}
		return "A's write has replaced B's", true, errors.Join(late, told)
	},
}
