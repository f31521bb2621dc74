package redislock

import (
	"context"
	"crypto/sha256"
	"encoding/base64"

	"github.com/redis/go-redis/v9"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// store is what a [Store] sends, on the contract of the nodes of package redlock.
type store struct {
	base

	layout *layout
	hubs   *hubs
	share  *share // nil if every command goes by itself
}

var (
	_ driver.Ranker     = (*store)(nil)
	_ driver.Validator  = (*store)(nil)
	_ driver.IdleCloser = (*store)(nil)
	_ driver.Inspector  = (*store)(nil)

	_ driver.MarkerInspector = (*store)(nil)
)

func newStore(rdb redis.UniversalClient, opts []Option) *store {
	s := &store{base: newBase(rdb, opts)}
	s.layout = newLayout(rdb, &s.base)
	s.hubs = newHubs(s.rdb, s.layout)
	if _, ok := s.rdb.(*redis.Client); ok {
		s.share = &share{rdb: s.rdb, replicas: s.replicas}
	}
	return s
}

// Capabilities implements driver.Driver.
func (s *store) Capabilities() driver.Capabilities {
	return driver.Capabilities{
		Backend: "redis", Punctual: s.punctual, Fence: true, Dedup: true,
		Block: true, Floor: true, Shared: true, Limit: true, Keep: true, Detach: true,
	}
}

// CloseIdle implements driver.IdleCloser: it ends the subscriptions. If a subscription is being
// dialled into a network that does not answer, it ends after 5 s with a plain client, and after
// the client's own timeouts in Cluster.
func (s *store) CloseIdle(ctx context.Context) error { return s.hubs.close(ctx) }

// kept is the value of a name that a release has left taken, but for the time, which the script adds.
// It begins with '=' or '!', which no token does: by that, the scripts of acquires recognise it. Each
// such value has a handle of its own. So the text after '=' is as long as a token, and is made from the
// token that leaves it.
func kept(c driver.Claim) string {
	if c.Handoff != "" {
		return "!" + c.Handoff + magic + c.Label + magic
	}
	sum := sha256.Sum256([]byte(c.Token))
	left := "=" + base64.RawURLEncoding.EncodeToString(sum[:])
	return left[:min(len(left), len(c.Token))] + magic + c.Label + magic
}

// forHandoff is how the value of a name begins that is left for c's hand-off.
func forHandoff(c driver.Claim) string { return "!" + c.Handoff + magic }
