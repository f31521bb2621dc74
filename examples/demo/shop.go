package main

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// shop is what happens to an order, whichever server it comes through. There is no lock in
// here: where the server holds none, two changes of one order can overlap.
type shop struct {
	book *book
	slow bool // for who watches: a second or so, not milliseconds
}

// change reads an order, works for a while and writes it back.
func (s shop) change(ctx context.Context, id int64, edit func(*Order)) error {
	order, err := s.book.read(ctx, id)
	if err != nil {
		return err
	}
	if err := s.work(ctx); err != nil {
		return err
	}
	edit(&order)
	return s.write(ctx, order)
}

// ship sends an order's parcel, unless that has been done.
func (s shop) ship(ctx context.Context, id int64) error {
	order, err := s.book.read(ctx, id)
	if err != nil || order.Shipped {
		return err
	}
	if err := s.work(ctx); err != nil {
		return err
	}
	if err := s.book.dispatch(ctx, id); err != nil {
		return err
	}
	order.Shipped = true
	return s.write(ctx, order)
}

func (s shop) write(ctx context.Context, order Order) error {
	lease, _ := core.FromContext(ctx)
	order.Fence = lease.Fence() // 0 without Holdfast
	return s.book.write(ctx, order)
}

// work takes 2 to 5 ms: a call to the bank, say.
func (s shop) work(ctx context.Context) error {
	if s.slow {
		pause(ctx, 1500*time.Millisecond)
		return context.Cause(ctx)
	}
	t := time.NewTimer(2*time.Millisecond + rand.N(3*time.Millisecond)) //nolint:gosec // G404: no secret
	defer t.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-t.C:
		return nil
	}
}
