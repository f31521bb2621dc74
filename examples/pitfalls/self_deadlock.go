package main

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// A function that locks calls another one that locks the same name.
var selfDeadlock = pitfall{
	name: "the lock in the lock",
	lock: "it knows processes, or nobody, but not calls; A's work calls code that takes the same lock",

	byHand: func(ctx context.Context, l *lab) (string, bool, error) {
		lock := func() (bool, error) { return l.rdb.SetNX(ctx, l.key("self"), "A", time.Minute).Result() }
		outer, err := lock()
		if err != nil || !outer {
			return "A does not get the lock", false, err
		}
		inner, err := lock()
		if !inner {
			return "A waits for itself, until its own lock runs out", true, err
		}
		return "A goes on", false, err
	},

	holdfast: func(ctx context.Context, l *lab) (string, bool, error) {
		inner := false
		err := l.a.Do(ctx, "self", func(ctx context.Context) error {
			return l.a.Do(ctx, "self", func(context.Context) error {
				inner = true
				return nil
			}, core.WithWait(0))
		})
		if inner {
			return "the inner call joins the lease of its context", false, err
		}
		return "A waits for itself", true, err
	},
}
