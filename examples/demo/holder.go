package main

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

const (
	frozenName = "order:1"
	frozenID   = 1
	frozenTTL  = 2 * time.Second
)

// report is what the holder tells once it has been frozen and thawed.
type report struct {
	Lost    bool   // its context had ended with a *core.LostError
	Cause   string // of its context's end
	Refusal string // of its late write, "" if the store took it
}

// hold is the process that is frozen. It locks an order and works until its context ends;
// then it does what it should not do any more: it writes.
func hold(ctx context.Context, r role) error {
	book, err := openBook(ctx, r.Store)
	if err != nil {
		return err
	}
	defer book.close()
	rdb := dial(r.Locks)
	defer rdb.Close()
	locks, err := core.New(redislock.New(rdb, redislock.WithPrefix(r.Prefix)), core.WithLogger(nil)) // the demo itself tells of the loss
	if err != nil {
		return err
	}
	defer closeLocks(ctx, locks)

	var rep report
	err = locks.Do(ctx, frozenName, func(ctx context.Context) error {
		order, err := book.read(ctx, frozenID)
		if err != nil {
			return err
		}
		lease, _ := core.FromContext(ctx)
		tell(lease.Fence())

		<-ctx.Done() // its work; the freeze comes in the midst of it
		cause := context.Cause(ctx)
		_, rep.Lost = errors.AsType[*core.LostError](cause)
		rep.Cause = cause.Error()

		order.Paid++
		order.Fence = lease.Fence()
		if err := book.write(context.WithoutCancel(ctx), order); err != nil {
			rep.Refusal = err.Error()
		}
		return nil
	}, core.WithTTL(frozenTTL))
	if err != nil && !errors.Is(err, core.ErrLost) {
		return err
	}
	text, err := json.Marshal(rep)
	if err != nil {
		return err
	}
	tell(string(text))
	<-ctx.Done()
	return nil
}
