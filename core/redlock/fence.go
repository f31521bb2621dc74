package redlock

import (
	"context"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// WithFence gives each lease a fence: see "The fence" in the package's documentation. Every process must use it, or
// none. An acquire takes one round trip more. Nodes must be a Redis with scripts: core.New refuses others. By default there is no fence.
func WithFence() Option { return withFence{} }

type withFence struct{}

func (withFence) apply(s *store) { s.fenced = true }

// raise makes the fence that a quorum has granted known to a quorum, before it is used: every node where
// the ballot has the name, or nobody has, counts on from there. Each does both in one step, so no later
// tenure that has one of these nodes gets a smaller fence. The tally is of the nodes that did, with that fence.
func (s *store) raise(ctx context.Context, b *ballot, c driver.Claim, fence uint64) (tally, <-chan vote) {
	claim := b.claim
	claim.Label, claim.TTL = c.Label, c.TTL // the same token may ask for something else
	claim.Place, claim.Rank, claim.Floor = c.Place, first, fence
	votes := make(chan vote, len(s.nodes))
	b.mu.Lock()
	b.launch()
	b.mu.Unlock()
	stop := s.fan(ctx, func(ctx context.Context, i int) {
		g, err := b.fly(ctx, i, claim)
		votes <- vote{i, g, err}
	})
	t := s.count(ctx, votes, c.TTL)
	if ctx.Err() != nil {
		stop()
	}
	t.fence = fence
	return t, votes
}
