package redlock

import (
	"context"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
)

// WithFence gives each lease a fence: see "The fence" in the package's documentation. Every process must use it, or
// none. An acquire takes one round trip more. Nodes must be a Redis with scripts: core.New refuses others. By default there is no fence.
func WithFence() Option { return withFence{} }

type withFence struct{}

func (withFence) apply(s *Store) { s.fenced = true }

// first is a rank before all that stand in a queue: who has a quorum comes before them.
const first = 1

// raise makes the fence that a quorum has granted known to a quorum, before it is used: every node where
// the vote has the name, or nobody has, counts on from there. Each does both in one step, so no later
// grant that has one of these nodes gets a smaller fence. The tally is of the nodes that did.
func (s *Store) raise(ctx context.Context, v *vote, c driver.Claim, fence uint64) (t *tally, late bool) {
	return s.attempt(ctx, v, c, ranked.Claim{Rank: first, Floor: fence})
}
