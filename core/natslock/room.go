package natslock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// isFor says whether the name was left for c's hand-off.
func (n *state) isFor(c driver.Claim) bool {
	return n.is.Kind == inspect.HoldHandoff && c.Handoff != "" && c.Exclusive() && n.is.Holders[0].ID == digest(c.Handoff)
}

// admits says whether nobody has the name, or those who have it leave room for c. Nobody writes over a key whose TTL is
// over, or nearly: see [sweep].
func (n *state) admits(c driver.Claim) bool {
	switch {
	case !n.lock.there():
		return true
	case n.is.lasts(n.at) < sweep:
		return false
	case n.isFor(c):
		return true
	case n.is.Kind != kindOf(c) || c.Exclusive():
		return false
	case c.Shared():
		return len(n.is.alive(n.at).Holders) < maxHolders
	default:
		return len(n.is.alive(n.at).Holders) < n.allows(c)
	}
}

// sweep is how often a server looks for keys whose TTL is over. It deletes them by a message to itself, which also
// deletes what was written meanwhile. So what is written over the lock of others has to arrive before that: see
// [state.inTime].
const sweep = 250 * time.Millisecond

// inTime bounds a write over the lock of others by what is left of the last of them. An answer after that would prove
// nothing.
func (n *state) inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if n.asked.IsZero() {
		return ctx, func() {}
	}
	return context.WithDeadline(ctx, n.asked.Add(n.is.lasts(n.at)*99/100)) // clocks run at rates within 1% of each other
}

// allows is how many holders there may be, if c is one of them.
func (n *state) allows(c driver.Claim) int {
	limit := min(c.Limit, maxHolders)
	for _, h := range n.is.alive(n.at).Holders {
		limit = min(limit, h.Limit)
	}
	return limit
}

// fewer is what c is told of the limit: 0 if it is its own.
func (n *state) fewer(c driver.Claim) int {
	if kindOf(c) != inspect.HoldLimited || n.lock.there() && n.is.Kind != inspect.HoldLimited || n.allows(c) == c.Limit {
		return 0
	}
	return n.allows(c)
}

// held is how c is refused.
func (n *state) held(c driver.Claim) *driver.Held {
	switch {
	case n.is.Kind == inspect.HoldForeign || n.admits(c):
		return &driver.Held{}
	case n.is.several():
		return &driver.Held{Remaining: n.frees(c), Limit: n.fewer(c)}
	}
	h := n.is.Holders[0]
	if n.is.left() {
		return &driver.Held{Label: h.Label, Remaining: min(h.ttl(), max(h.left(n.at), sweep)), Exact: n.is.Kind == inspect.HoldKept}
	}
	return &driver.Held{Label: h.Label, Remaining: h.ttl()}
}

// frees is when there may be room for c beside several holders, or none of them any more, unless they are renewed.
func (n *state) frees(c driver.Claim) (left time.Duration) {
	for i, h := range n.is.alive(n.at).Holders {
		ends := min(h.left(n.at), h.ttl())
		if i > 0 && n.is.Kind == inspect.HoldLimited && kindOf(c) == inspect.HoldLimited {
			left = min(left, ends)
		} else {
			left = max(left, ends)
		}
	}
	return max(left, sweep)
}
