package core

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/sweep"
)

// sweep cleans up behind b, whose token is over, as long as commands that carry it may be executed
// yet, for a TTL from now, unless the last one was given up that long ago: see package sweep. So what is granted late is given back within a second.
func (b *bid) sweep(after time.Duration) {
	b.mu.Lock()
	left := b.cfg.ttl - b.root.past(b.since)
	open := b.open > 0
	b.mu.Unlock()
	if open && left > 0 {
		b.root.sweeper.Add(sweep.Task{
			Clean: func(within time.Duration) bool { return b.clean(within, b.claim()) },
			Open:  b.doubtful, After: after, For: b.cfg.ttl,
		})
	}
}

// clean cleans up once, and says whether the lock service has answered. Where calls outlive their
// time, those that hang are few.
func (b *bid) clean(within time.Duration, c driver.Claim) bool {
	r := b.root
	if r.hanging.Load() >= sweep.Few {
		return false
	}
	ctx, cancel := r.within(context.Background(), min(within, b.bound()/2))
	defer cancel()
	if here(ctx) {
		return !failed(r.driver.Release(ctx, c))
	}
	err, ok := ask(ctx, r, func(ctx context.Context) error { return r.driver.Release(ctx, c) },
		func(error) { r.hanging.Add(-1) })
	if !ok {
		r.hanging.Add(1)
	}
	return ok && !failed(err)
}

// cleanUp leaves a place in the backend's line, if there is one to leave, and deletes the
// name if the dead token owns it, in one step. The error says only whether it was answered.
func (b *bid) cleanUp(ctx context.Context, p *place) error {
	claim := b.claim()
	if p != nil {
		claim.Place = p.id
	}
	return b.dispose(ctx, claim)
}

// leaving leaves a place without the bid's token, which may be in use.
func (b *bid) leaving(p *place) driver.Claim {
	return driver.Claim{Name: b.name, Token: newToken(), TTL: b.cfg.lifetime(), Place: p.id}
}

// leaveAgain is for the end of a command that lines p up. If the place was left meanwhile, the
// command may have come after the one that left.
func (b *bid) leaveAgain(ctx context.Context, p *place) {
	select {
	case <-p.left:
		if failed(b.dispose(ctx, b.leaving(p))) {
			b.leaveLater(p)
		}
	default:
	}
}

// leaveLater leaves a place as soon as the lock service can be reached, unless it is dead by then.
func (b *bid) leaveLater(p *place) {
	var left atomic.Bool
	b.root.sweeper.Add(sweep.Task{
		Clean: func(within time.Duration) bool {
			left.Store(b.clean(within, b.leaving(p)))
			return left.Load()
		},
		Open:  func() bool { return !left.Load() },
		After: sweep.First, For: driver.PlaceLife(b.cfg.ttl),
	})
}

// doubtPlace is for the end of a command whose outcome is open, and that lines p up: if p is left
// within a TTL, it is left again and again.
func (b *bid) doubtPlace(p *place) {
	if p.doubt.Swap(b.root.seconds()) > 0 {
		return
	}
	b.root.spawn(func() {
		<-p.left
		if b.root.past(p.doubt.Load()) < b.cfg.ttl {
			clean := func(within time.Duration) bool { return b.clean(within, b.leaving(p)) }
			b.root.sweeper.Add(sweep.Task{Clean: clean, After: sweep.First, For: b.cfg.ttl})
		}
	})
}

// lineOpen says of what a Wait came to that the command which lines up may be under way yet.
func lineOpen(ctx context.Context, err error) bool {
	answered := err == nil || err == ctx.Err() //nolint:errorlint // driver.Queuer: as it is
	return !answered && !errors.Is(err, driver.ErrNotSent)
}

func (b *bid) dispose(ctx context.Context, claim driver.Claim) error {
	ctx = context.WithoutCancel(ctx)
	return b.root.persist(ctx, b.bound()/2, b.bound(), failed, func(ctx context.Context) error {
		return b.release(ctx, claim)
	})
}
