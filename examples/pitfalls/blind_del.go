package main

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// The lock most articles end with. It is taken rightly, and freed by anybody.
var blindDel = pitfall{
	name: "SET NX PX, then DEL",
	lock: "the DEL takes no owner; A's lock ran out, B has it",

	byHand: func(ctx context.Context, l *lab) (string, bool, error) {
		key := l.key("del")
		lock := func(owner string) error { return l.rdb.SetNX(ctx, key, owner, time.Minute).Err() }
		unlock := func() error { return l.rdb.Del(ctx, key).Err() }
		return byHandOvertaken(ctx, l, key, lock, unlock)
	},

	holdfast: func(ctx context.Context, l *lab) (string, bool, error) {
		return releaseOfALostLease(ctx, l, "del")
	},
}

// byHandOvertaken: A's lock runs out, B takes it, A unlocks.
func byHandOvertaken(ctx context.Context, l *lab, key string, lock func(owner string) error, unlock func() error) (string, bool, error) {
	if err := lock("A"); err != nil {
		return "", false, err
	}
	l.runOut()
	if err := lock("B"); err != nil {
		return "", false, err
	}
	if err := unlock(); err != nil {
		return "", false, err
	}
	n, err := l.rdb.Exists(ctx, key).Result()
	if n == 0 {
		return "A has freed the lock of B, who still works", true, err
	}
	return "B's lock stands", false, err
}

// releaseOfALostLease is that scene with Holdfast.
func releaseOfALostLease(ctx context.Context, l *lab, name string) (string, bool, error) {
	a, b, err := l.overtaken(ctx, name)
	if err != nil {
		return "", false, err
	}
	defer b.Release(ctx)
	released := a.Release(ctx)
	free, err := l.free(ctx, name)
	if errors.Is(released, core.ErrLost) && !free {
		return "A is told that its lease was lost; B's stands", false, err
	}
	return "A's release did something to B", true, err
}
