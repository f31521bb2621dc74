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

// pause waits for the next attempt, or returns why there will be none. Or the backend grants the
// name meanwhile.
func (c *contender) pause() (*Lease, error) {
	b := &c.backoff
	c.beginWait()
	c.tellLong(c.seen.held)
	if c.ctx.Err() != nil {
		return nil, c.ended()
	}
	if b.spins > freeSpins {
		if err := c.sleep(min(time.Millisecond<<min(b.spins-freeSpins, 5), firstPoll)); err != nil {
			return nil, err
		}
	}
	b.spins++
	if !b.listen {
		b.spins = 0
		return nil, c.sleep(b.next)
	}
	ctx, cancel := context.WithTimeout(c.waiting(), b.next)
	defer cancel()
	asked := c.engine.clock.Read()
	n := c.hear(ctx, c.engine.inline(c.ctx))
	switch {
	case n.granted:
		return c.grantedInLine(n.grant, asked)
	case n.err == nil:
		return nil, nil //nolint:nilnil // documented: the next attempt
	case c.waits.Err() != nil:
		return nil, c.why()
	case ctx.Err() == nil: // it cannot tell: poll
		b.spins = 0
		return nil, c.sleep(min(b.next, jitter(b.slower())))
	default: // nothing was heard
		b.spins = 0
		return nil, nil //nolint:nilnil // as above
	}
}

// news is what the backend tells a contender that waits.
type news struct {
	grant   driver.Grant
	granted bool
	err     error // if it is nil, and nothing is granted, it is worth trying
}

// hear waits for news of the backend, as long as ctx stands. here says to ask on the caller's
// goroutine: a wake-up is then the next attempt at once.
func (c *contender) hear(ctx context.Context, here bool) news {
	t, claim, at := c.token, c.token.claim(), (*place)(nil)
	if c.offers() && !c.follows {
		at = c.engine.names.offer(c.waiter, &claim, c.offered.number > 0)
		if claim.Offer > 0 { // without an offer there is nothing to withdraw, and the place stays
			c.offered = offer{at, claim.Offer}
		}
	} else {
		at = c.engine.names.lineUp(c.waiter)
	}
	claim.Place, c.follows = at.id, false
	wait := func(ctx context.Context) (n news) {
		if claim.Offer > 0 {
			n.grant, n.granted, n.err = c.engine.offerer.Offer(ctx, claim)
		} else {
			n.err = c.engine.queuer.Wait(ctx, claim)
		}
		if !n.granted && lineOpen(ctx, n.err) {
			t.doubtPlace(at)
			if claim.Offer > 0 { // it may be executed, and then granted, at any time
				t.doubt()
			}
		}
		return n
	}
	if here {
		return wait(ctx)
	}
	n, ok := callApart(ctx, c.engine, func(ctx context.Context) news {
		n := wait(ctx)
		if ctx.Err() != nil {
			t.leaveAgain(ctx, at)
			t.withdrawAgain(ctx, offer{at, claim.Offer})
		}
		return n
	}, func(late news) {
		if late.granted {
			t.doubt()
			t.lateReply(ctx, reply{grant: late.grant})
		}
	})
	if !ok {
		n.err = ctx.Err()
	}
	return n
}

// offers says whether the claim may be granted while it waits. A claim with more to find out than
// whether the name is free has to ask.
func (c *contender) offers() bool {
	return c.engine.offerer != nil && c.handoff == "" && c.cfg.plainGrant()
}
