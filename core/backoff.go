package core

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Pauses between attempts that nothing cuts short. This pace of polling is for backends that cannot
// notify, and for the time in which a backend does not answer.
const (
	firstPoll = 25 * time.Millisecond
	lastPoll  = time.Second
)

// freeSpins is how many wake-ups in a row may turn out false before the contender slows down.
const freeSpins = 3

// backoff is how a contender spends the time between two attempts. Only the contender uses it.
type backoff struct {
	next   time.Duration // until the next attempt, if nothing is heard
	listen bool          // wait for a notification of the backend
	poll   time.Duration // the current pace of polling
	spins  int           // how many times in a row it was told to try, in vain
}

// heldBy: somebody else holds the name.
func (b *backoff) heldBy(h *driver.Held, recheck time.Duration, listen bool) {
	b.next, b.listen = jitter(recheck), listen
	if !listen {
		b.next = min(b.next, jitter(b.slower()))
	}
	if h.Remaining > 0 { // backends count in milliseconds
		b.next = min(b.next, h.Remaining+2*time.Millisecond-jitter(time.Millisecond))
	}
}

// unanswered: the backend did not answer.
func (b *backoff) unanswered() {
	b.next, b.listen = jitter(b.slower()), false
}

func (b *backoff) slower() time.Duration {
	b.poll = min(max(2*b.poll, firstPoll), lastPoll)
	return b.poll
}

// pause waits for the next attempt, or returns why there will be none.
func (c *contender) pause() error {
	b := &c.backoff
	c.waited = true
	if b.spins > freeSpins {
		if err := c.sleep(min(time.Millisecond<<min(b.spins-freeSpins, 5), firstPoll)); err != nil {
			return err
		}
	}
	b.spins++
	if !b.listen {
		b.spins = 0
		return c.sleep(b.next)
	}
	ctx, cancel := context.WithTimeout(c.waiting(), b.next)
	defer cancel()
	at := c.engine.names.lineUp(c.waiter)
	err := c.hear(ctx, at, c.engine.inline(c.ctx))
	switch {
	case err == nil:
		return nil
	case c.waits.Err() != nil:
		return c.why()
	case ctx.Err() == nil: // it cannot tell: poll
		err = c.sleep(min(b.next, jitter(b.slower())))
	default: // nothing was heard
		err = nil
	}
	b.spins = 0
	return err
}

// hear waits for a notification of the backend, as long as ctx stands. It returns nil if it is
// worth trying, and an error if the backend cannot tell.
func (c *contender) hear(ctx context.Context, at *place, here bool) error {
	t, claim := c.token, c.token.claim()
	claim.Place = at.id
	if here { // on the caller's goroutine: a wake-up is then the next attempt at once
		err := c.engine.queuer.Wait(ctx, claim)
		if lineOpen(ctx, err) {
			t.doubtPlace(at)
		}
		return err
	}
	heard := make(chan error, 1)
	c.engine.spawn(func() {
		err := c.engine.queuer.Wait(ctx, claim)
		if ctx.Err() != nil {
			t.leaveAgain(ctx, at)
		}
		if lineOpen(ctx, err) {
			t.doubtPlace(at)
		}
		heard <- err
	})
	select {
	case err := <-heard:
		return err
	case <-ctx.Done():
		return ctx.Err()
	}
}
