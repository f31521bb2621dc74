package core

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/callctx"
	"github.com/holdfast-go/holdfast/core/internal/sweep"
)

// sweep cleans up behind b, whose token is over, as long as commands that carry it may still be
// executed. It does so for a TTL from now, unless the last such command was given up a TTL ago or
// earlier: see package sweep. So what is granted late is given back within a second.
func (b *token) sweep(after time.Duration) {
	b.mu.Lock()
	left := b.cfg.ttl - b.engine.past(b.since)
	open := b.open > 0
	b.mu.Unlock()
	if open && left > 0 {
		b.engine.sweeper.Add(sweep.Task{Clean: b.cleaner(b.claim), Open: b.doubtful, After: after, For: b.cfg.ttl})
	}
}

// cleaner makes a function that cleans up once per call, for a Sweeper.
func (b *token) cleaner(claim func() driver.Claim) func(within time.Duration) sweep.Outcome {
	c := &cleaner{token: b, claim: claim, last: sweep.Unsent}
	return c.clean
}

// cleaner is the clean-up behind one token. Only the Sweeper's goroutine that has its task uses
// last.
type cleaner struct {
	token *token
	claim func() driver.Claim
	last  sweep.Outcome
	hangs atomic.Int32 // calls that have outlived their time and still run
}

// clean cleans up once. There are backends whose calls can outlive their time. Each cleaner then
// has at most one call that hangs, and all cleaners together have few. Cleaners that got no answer
// before have the fewest, so that they do not keep the others from cleaning up.
func (c *cleaner) clean(within time.Duration) sweep.Outcome {
	r, most := c.token.engine, int32(sweep.Many)
	if c.last == sweep.Silent {
		most = sweep.Few
	}
	if c.hangs.Load() > 0 || r.hanging.Load() >= most {
		return sweep.Unsent
	}
	c.last = sweep.Answered
	if failed(c.send(min(within, c.token.cfg.attemptTimeout()))) {
		c.last = sweep.Silent
	}
	return c.last
}

func (c *cleaner) send(within time.Duration) error {
	r := c.token.engine
	ctx, cancel := r.within(context.Background(), within)
	defer cancel()
	if callctx.Is(ctx) {
		return r.driver.Release(ctx, c.claim())
	}
	err, ok := callApart(ctx, r, func(ctx context.Context) error { return r.driver.Release(ctx, c.claim()) },
		func(error) { c.hung(-1) })
	if !ok {
		c.hung(1)
		return errNoAnswer
	}
	return err
}

func (c *cleaner) hung(more int32) {
	c.token.engine.hanging.Add(more)
	c.hangs.Add(more)
}

// cleanUp deletes the name if the dead token owns it. The error only says whether it was answered.
func (b *token) cleanUp(ctx context.Context) error { return b.dispose(ctx, b.claim()) }

// leaving is a claim that leaves a place. It has a new secret, because the token may be in use.
func (b *token) leaving(p *place) driver.Claim {
	c := b.claim()
	c.Token, c.Place = newSecret(), p.id
	return c
}

// leaveAgain is for the end of a command that puts p in the backend's queue. If p was left
// meanwhile, this command may have been executed after the one that left it, so p is left again.
func (b *token) leaveAgain(ctx context.Context, p *place) {
	select {
	case <-p.left:
		if failed(b.dispose(ctx, b.leaving(p))) {
			b.disposeLater(func() driver.Claim { return b.leaving(p) })
		}
	default:
	}
}

// withdraw withdraws an offer, or leaves the place if o has no number. The token is over. If it was
// granted the name there, the name comes free in the same step.
func (b *token) withdraw(ctx context.Context, o offer) {
	claim := b.claim()
	claim.Place, claim.Offer = o.at.id, o.number
	if failed(b.dispose(ctx, claim)) {
		b.disposeLater(func() driver.Claim { return claim })
	}
}

// withdrawAgain is for the end of a command that has made an offer. If the token is over by now, the
// command may have been executed after the one that withdrew the offer, so it is withdrawn again.
func (b *token) withdrawAgain(ctx context.Context, o offer) {
	if o.number > 0 && b.isOver() {
		b.withdraw(ctx, o)
	}
}

// disposeLater has a place left, or an offer withdrawn, as soon as the lock service can be reached,
// unless the place is dead before that.
func (b *token) disposeLater(claim func() driver.Claim) {
	var heard atomic.Bool
	clean := b.cleaner(claim)
	b.engine.sweeper.Add(sweep.Task{
		Clean: func(within time.Duration) sweep.Outcome {
			outcome := clean(within)
			heard.Store(outcome == sweep.Answered)
			return outcome
		},
		Open:  func() bool { return !heard.Load() },
		After: sweep.First, For: driver.PlaceLife(b.cfg.ttl),
	})
}

// doubtPlace is for the end of a command that puts p in the backend's queue and whose outcome is
// open. If p is left within a TTL, it is left again and again.
func (b *token) doubtPlace(p *place) {
	if p.doubt.Swap(b.engine.seconds()) > 0 {
		return
	}
	b.engine.spawn(func() {
		<-p.left
		if b.engine.past(p.doubt.Load()) < b.cfg.ttl {
			clean := b.cleaner(func() driver.Claim { return b.leaving(p) })
			b.engine.sweeper.Add(sweep.Task{Clean: clean, After: sweep.First, For: b.cfg.ttl})
		}
	})
}

// dispose sends a release that cleans up. The error only says whether it was answered.
func (b *token) dispose(ctx context.Context, claim driver.Claim) error {
	ctx = context.WithoutCancel(ctx)
	return b.engine.persist(ctx, b.cfg.attemptTimeout()/2, b.cfg.attemptTimeout(), failed, func(ctx context.Context) error {
		return b.release(ctx, claim)
	})
}
