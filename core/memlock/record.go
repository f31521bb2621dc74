package memlock

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// kind says who can own a name together: those of the same kind, unless that is exclusive.
type kind uint8

const (
	exclusive kind = iota
	shared
	limited
)

func kindOf(c driver.Claim) kind {
	switch {
	case c.Shared():
		return shared
	case c.Exclusive():
		return exclusive
	default:
		return limited
	}
}

// record is what there is of a name.
type record struct {
	kind    kind // of the holders
	holders []holder
	fence   uint64 // of the readers or of the owner; 0 for a block, of which only the owner knows the right one
	queue   []*entry
}

// holder is one who owns a name, or nobody for whom it stays taken.
type holder struct {
	token   string // "" if a release has left the name taken
	left    string // the token of that release
	label   string
	limit   int
	handoff string // of who may take it over, if there is no token
	since   time.Time
	expires time.Time
}

// tidy drops those whose time is over.
func (r *record) tidy(now time.Time) {
	r.holders = slices.DeleteFunc(r.holders, func(h holder) bool { return !now.Before(h.expires) })
	r.queue = slices.DeleteFunc(r.queue, func(e *entry) bool { return !now.Before(e.dead) })
}

func (r *record) holder(token string) *holder {
	for i := range r.holders {
		if h := &r.holders[i]; h.token == token && token != "" {
			return h
		}
	}
	return nil
}

// put makes h one of the holders, or takes the place of what it was.
func (r *record) put(h holder) {
	if was := r.holder(h.token); was != nil {
		h.since = was.since
		*was = h
		return
	}
	r.holders = append(r.holders, h)
}

func (r *record) remove(token string) {
	r.holders = slices.DeleteFunc(r.holders, func(h holder) bool { return h.token == token })
}

// kept says that nobody owns the name, and it stays taken.
func (r *record) kept() bool { return len(r.holders) == 1 && r.holders[0].token == "" }

// isFor says that the name was left for a hand-off.
func (r *record) isFor(handoff string) bool {
	return handoff != "" && r.kept() && r.holders[0].handoff == handoff
}

// admits says whether there is room for c, apart from the queue.
func (r *record) admits(c driver.Claim) bool {
	switch {
	case len(r.holders) == 0:
		return true
	case r.kind != kindOf(c):
		return false
	default:
		return r.kind == shared || r.kind == limited && len(r.holders) < r.allows(c)
	}
}

// allows is how many holders there may be, if c is one of them.
func (r *record) allows(c driver.Claim) int {
	limit := c.Limit
	for _, h := range r.holders {
		limit = min(limit, h.limit)
	}
	return limit
}

// fewer is what c is told of the limit: 0 if it is its own.
func (r *record) fewer(c driver.Claim) int {
	if kindOf(c) == limited && r.kind == limited && r.allows(c) < c.Limit {
		return r.allows(c)
	}
	return 0
}

// refusal is what c is told, for which there is no room.
func (r *record) refusal(c driver.Claim, now time.Time) *driver.Held {
	first, last := r.holders[0].expires, r.holders[0].expires
	for _, h := range r.holders {
		if h.expires.Before(first) {
			first = h.expires
		}
		if h.expires.After(last) {
			last = h.expires
		}
	}
	held := &driver.Held{Remaining: last.Sub(now), Limit: r.fewer(c)}
	switch {
	case r.kind == exclusive:
		held.Label = r.holders[0].label
		held.Exact = r.kept() && r.holders[0].handoff == ""
	case r.kind == limited && kindOf(c) == limited:
		held.Remaining = first.Sub(now)
	}
	return held
}
