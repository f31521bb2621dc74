package core

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Pauses between attempts that nothing cuts short. The pace of polling is for backends
// that cannot notify, and for the time in which a backend does not answer.
const (
	firstPoll = 25 * time.Millisecond
	lastPoll  = time.Second
)

// freeSpins is how many wake-ups in a row may turn out false before the contender slows
// down.
const freeSpins = 3

// pace is how a contender spends the time between two attempts.
type pace struct {
	*acquisition
	waiter *waiter

	next   time.Duration // until the next attempt, if nothing is heard
	listen bool          // the backend may tell when to try
	poll   time.Duration // the current pace of polling
	spins  int           // times it was told to try, in vain, in a row
}

// heldBy: another owner has the name.
func (p *pace) heldBy(h *driver.Held) {
	p.next = jitter(p.cfg.recheck())
	p.listen = p.engine.queuer != nil
	if !p.listen {
		p.next = min(p.next, jitter(p.slower()))
	}
	if h.Remaining > 0 { // backends count in milliseconds
		p.next = min(p.next, h.Remaining+2*time.Millisecond-jitter(time.Millisecond))
	}
}

// unanswered: the backend did not answer.
func (p *pace) unanswered() {
	p.next, p.listen = jitter(p.slower()), false
}

func (p *pace) slower() time.Duration {
	p.poll = min(max(2*p.poll, firstPoll), lastPoll)
	return p.poll
}

// pause waits for the next attempt, or returns why there will be none.
func (p *pace) pause() error {
	p.waited = true
	over, stop := p.budget()
	defer stop()
	if spins := p.spins; spins > freeSpins {
		if err := p.wait(min(time.Millisecond<<min(spins-freeSpins, 5), firstPoll), over, nil); err != nil {
			return err
		}
		p.spins = spins // this pause is no end of them
	}
	p.spins++
	if !p.listen {
		return p.wait(p.next, over, nil)
	}
	ctx, cancel := context.WithTimeout(p.ctx, p.next)
	defer cancel()
	place := p.engine.names.lineUp(p.waiter)
	if p.engine.inline(p.ctx) {
		return p.hearInline(ctx, place, over)
	}
	return p.wait(p.next, over, p.hear(ctx, place))
}

// hear waits at the backend, for as long as ctx stands. The result is nil if it is worth
// trying, and an error if the backend cannot tell.
func (p *pace) hear(ctx context.Context, at *place) <-chan error {
	heard := make(chan error, 1)
	token, claim := p.token, p.claimAt(at)
	p.engine.spawn(func() {
		err := p.engine.queuer.Wait(ctx, claim)
		ended := ctx.Err() != nil
		if ended {
			token.leaveAgain(ctx, at)
		}
		if lineOpen(ctx, err) {
			token.doubtPlace(at)
		}
		if err == nil || !ended {
			heard <- err
		}
	})
	return heard
}

// hearInline is hear on the caller's goroutine: a wake-up is then the next attempt at once.
func (p *pace) hearInline(ctx context.Context, at *place, over <-chan time.Time) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(p.engine.life, cancel)() //nolint:contextcheck // Close is no caller
	if p.cfg.wait != WaitForever {
		left := p.cfg.wait - time.Since(p.began)
		if left <= 0 {
			return p.overBudget()
		}
		defer time.AfterFunc(left, cancel).Stop()
	}
	err := p.engine.queuer.Wait(ctx, p.claimAt(at))
	if lineOpen(ctx, err) {
		p.token.doubtPlace(at)
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() == nil: // it cannot tell: poll
		return p.wait(min(p.next, jitter(p.slower())), over, nil)
	case p.ctx.Err() != nil:
		return p.ended()
	case p.engine.closed():
		return ErrClosed
	case p.cfg.wait != WaitForever && time.Since(p.began) >= p.cfg.wait:
		return p.overBudget()
	default:
		p.spins = 0
		return nil
	}
}

func (p *pace) claimAt(at *place) driver.Claim {
	c := p.token.claim()
	c.Place = at.id
	return c
}

// wait waits for d, or until the backend is heard.
func (p *pace) wait(d time.Duration, over <-chan time.Time, heard <-chan error) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	for {
		select {
		case err := <-heard:
			if err == nil {
				return nil
			}
			heard = nil
			timer.Reset(min(d, jitter(p.slower()))) // poll
		case <-timer.C:
			p.spins = 0
			return nil
		case <-over:
			return p.overBudget()
		case <-p.ctx.Done():
			return p.ended()
		case <-p.engine.closing:
			return ErrClosed
		}
	}
}
