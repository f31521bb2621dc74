package sqllock

import (
	"crypto/sha256"
	"encoding/base64"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// acquire decides what c gets.
func (r *row) acquire(c driver.Claim, channel string) (driver.Grant, error) {
	switch {
	case r.done != nil && !r.ownedBy(c.Token):
		return driver.Grant{}, &driver.Duplicate{Label: *r.done}
	case r.owns(c), c.Handoff != "" && r.token == handoffFor+c.Handoff:
		return r.grant(c), nil
	case r.room(c) && r.ahead(c):
		r.beat(c, channel)
		r.telling = true
		return driver.Grant{}, &driver.Held{Limit: r.fewer(c)}
	case !r.room(c):
		r.beat(c, channel)
		return driver.Grant{}, r.held(c)
	default:
		return r.grant(c), nil
	}
}

// grant makes c the owner, or one of them.
func (r *row) grant(c driver.Claim) driver.Grant {
	r.leave(c.At())
	r.changed = true
	if !c.Exclusive() {
		return r.admit(c)
	}
	n := fencesOf(c)
	if len(r.Line) > 0 {
		n = min(n, driver.TurnsBesideOthers)
	}
	first := r.mint(n)
	r.token, r.label, r.expires, r.Holders = c.Token, c.Label, r.now+c.TTL.Microseconds(), nil
	r.turn = first
	if n > 1 {
		r.turn = -first
	}
	return driver.Grant{Fence: uint64(first), Fences: int(n)} //nolint:gosec // G115: it counts up from the clock
}

// admit makes c one of the holders, or the first one.
func (r *row) admit(c driver.Claim) (g driver.Grant) {
	if r.token != kind(c) {
		r.vacate()
		r.token, r.turn = kind(c), 0
		if c.Shared {
			r.turn = r.mint(1)
		}
	}
	r.extend(c)
	if c.Shared {
		g.Fence = uint64(r.turn) //nolint:gosec // G115: it counts up from the clock
	}
	g.Limit = r.fewer(c)
	r.telling = true // there may be room for more
	return g
}

// mint reserves n fences and returns the first. The clock lets them grow even where the row was lost.
func (r *row) mint(n int64) int64 {
	first := max(r.fence+1, r.now)
	r.fence = first + n - 1
	return first
}

// renew gives c its full TTL again. It says whether c owns the name.
func (r *row) renew(c driver.Claim) (mine bool) {
	if mine = r.owns(c); mine && c.TTL > 0 {
		r.extend(c)
	}
	return mine
}

// extend gives c, which is an owner or about to be one, its full TTL.
func (r *row) extend(c driver.Claim) {
	r.changed = true
	ends := r.now + c.TTL.Microseconds()
	if !r.together() {
		r.expires = ends
		return
	}
	if i := r.holder(c.Token); i >= 0 {
		r.Holders[i].Ends = ends
	} else {
		h := holder{Token: c.Token, Limit: c.Limit, Ends: ends, Since: r.now, Label: c.Label}
		if c.Shared {
			h.Limit = 0
		}
		r.Holders = append(r.Holders, h)
	}
	r.expireHolders()
}

// release ends what c owns, and its place in the queue. It says whether c owned the name.
func (r *row) release(c driver.Claim) (mine bool) {
	if c.Place != "" {
		r.changed = r.leave(c.Place) || r.changed
	}
	if mine = r.ownedBy(c.Token); mine {
		r.drop(c.Token)
		if c.Keep > 0 && r.free() {
			r.token, r.label, r.expires, r.turn = leftBy(c), c.Label, r.now+c.Keep.Microseconds(), 0
		}
	}
	r.telling = true
	return mine
}

// drop ends what one token owns.
func (r *row) drop(token string) {
	r.changed = true
	if i := r.holder(token); r.together() && i >= 0 {
		r.Holders = append(r.Holders[:i:i], r.Holders[i+1:]...)
		r.expireHolders()
		return
	}
	r.vacate()
}

// leftBy is the token of a name that c's release leaves taken. Nobody owns it. Without a hand-off it is
// made from c's token, so that each has a handle of its own.
func leftBy(c driver.Claim) string {
	if c.Handoff != "" {
		return handoffFor + c.Handoff
	}
	sum := sha256.Sum256([]byte(c.Token))
	return keptFor + base64.RawURLEncoding.EncodeToString(sum[:])[:driver.HandoffWidth]
}
