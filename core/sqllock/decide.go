package sqllock

import (
	"crypto/sha256"
	"encoding/base64"

	"github.com/holdfast-go/holdfast/core/driver"
)

// ask decides what c gets.
func (r *row) ask(c driver.Claim) (driver.Grant, error) {
	switch {
	case r.done != nil && !r.ownedBy(c.Token):
		r.leave(c.Token)
		r.telling = true
		return driver.Grant{}, &driver.Duplicate{Label: *r.done}
	case r.owns(c), c.Handoff != "" && r.token == handoffFor+c.Handoff:
		return r.grant(c), nil
	case !r.room(c):
		return driver.Grant{}, r.held(c)
	case len(r.Queue) > 0 && r.Queue[0].Token != c.Token:
		r.telling = true
		return driver.Grant{}, &driver.Held{Limit: r.fewer(c)}
	default:
		return r.grant(c), nil
	}
}

// grant makes c the owner, or one of them.
func (r *row) grant(c driver.Claim) driver.Grant {
	r.leave(c.Token)
	r.changed, r.durable = true, true
	if !c.Exclusive() {
		return r.admit(c)
	}
	n := fencesOf(c, len(r.Queue) > 0)
	first := r.mint(n)
	r.token, r.label, r.expires, r.Holders = c.Token, c.Label, r.now+c.TTL.Microseconds(), nil
	r.turn = first
	if n > 1 {
		r.turn = -first
	}
	return grantOf(r.fence, n)
}

// admit makes c one of the holders, or the first one.
func (r *row) admit(c driver.Claim) (g driver.Grant) {
	if r.token != kind(c) {
		r.vacate()
		r.token, r.turn = kind(c), 0
		if c.Shared() {
			r.turn = r.mint(1)
		}
	}
	r.extend(c)
	if c.Shared() {
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

// fencesOf is how many fences c gets.
func fencesOf(c driver.Claim, besideOthers bool) int64 {
	most := driver.MaxFences
	if besideOthers {
		most = driver.FencesBesideOthers
	}
	return int64(min(max(1, c.Fences), most))
}

// grantOf is a grant of n fences.
func grantOf(last, n int64) driver.Grant {
	return driver.Grant{Fence: uint64(last - n + 1), Fences: int(n)} //nolint:gosec // G115: it counts up from the clock
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
	r.changed, r.durable = true, true
	ends := r.now + c.TTL.Microseconds()
	if !r.together() {
		r.expires = ends
		return
	}
	if i := r.holder(c.Token); i >= 0 {
		r.Holders[i].Ends = ends
	} else {
		r.Holders = append(r.Holders, holder{Token: c.Token, Limit: max(0, c.Limit), Ends: ends, Since: r.now, Label: c.Label})
	}
	r.expireHolders()
}

// release ends what c owns, and its entry in the queue. It says whether c owned the name.
func (r *row) release(c driver.Claim) (mine bool) {
	r.leave(c.Token)
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
	r.changed, r.durable = true, true
	if i := r.holder(token); r.together() && i >= 0 {
		r.Holders = append(r.Holders[:i:i], r.Holders[i+1:]...)
		r.expireHolders()
		return
	}
	r.vacate()
}

// leftBy is the token of a name that c's release leaves: "" if it is free then. Nobody owns one that is taken. Without
// a hand-off it is made from c's token, so that each has a handle of its own.
func leftBy(c driver.Claim) string {
	switch {
	case c.Keep == 0:
		return ""
	case c.Handoff != "":
		return handoffFor + c.Handoff
	}
	sum := sha256.Sum256([]byte(c.Token))
	return keptFor + base64.RawURLEncoding.EncodeToString(sum[:])[:driver.HandoffWidth]
}
