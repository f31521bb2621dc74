package core

import (
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// rest is what is left at now of the time for which WithMinHold keeps the name taken. It
// counts from when the grant was heard of, which is never before it was made: such a tenure has
// one turn.
func (t *tenure) rest(now clock.Reading) time.Duration {
	if t.cfg.minHold == 0 {
		return 0
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.forgone {
		return 0
	}
	left := t.cfg.minHold - (now.Up().Sub(t.first.since))
	return max(0, left+time.Millisecond-1).Truncate(time.Millisecond) // backends count in whole ones
}

// forgo is for a tenure that is given back: nobody has worked under it.
func (t *tenure) forgo() {
	t.mu.Lock()
	t.forgone = true
	t.mu.Unlock()
}

// renewClaim is what a renewal asks for: the TTL, but no less than a crash now would have to
// leave. It has the fence of the turn under way, so that the lock service learns it without a
// cost to those who acquire. Left is how long the tenure is still trusted at now, 0 if it is not.
func (t *tenure) renewClaim(now clock.Reading) (c driver.Claim, left time.Duration) {
	c = t.token.claim()
	c.TTL = max(t.cfg.ttl, t.rest(now))
	t.mu.Lock()
	defer t.mu.Unlock()
	c.Fence = t.fenceOf(t.turn)
	t.shown = t.shown || c.Fence > 0
	return c, t.leftAt(now)
}
