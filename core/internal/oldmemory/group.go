package memlock

import (
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
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
	case c.Shared:
		return shared
	case c.Exclusive():
		return exclusive
	default:
		return limited
	}
}

// holder is one of several that own a name together.
type holder struct {
	label   string
	limit   int
	since   time.Time
	expires time.Time
}

// extend gives c, which owns l or is about to, its full time.
func (l *lock) extend(c driver.Claim, now time.Time) {
	if l.kind == exclusive {
		l.expires = now.Add(c.TTL)
		return
	}
	since := now
	if h := l.holders[c.Token]; h != nil {
		since = h.since
	}
	l.holders[c.Token] = &holder{c.Label, c.Limit, since, now.Add(c.TTL)}
	l.settle(now)
}

// settle drops those whose time is over: l expires with the last of the others.
func (l *lock) settle(now time.Time) {
	if l.kind == exclusive {
		return
	}
	l.expires = now
	for token, h := range l.holders {
		if !now.Before(h.expires) {
			delete(l.holders, token)
		} else if h.expires.After(l.expires) {
			l.expires = h.expires
		}
	}
}

// allows is how many holders there may be, if c is one of them.
func (l *lock) allows(c driver.Claim) int {
	limit := c.Limit
	for _, h := range l.holders {
		limit = min(limit, h.limit)
	}
	return limit
}

// fewer is what c is told of the limit: 0 if it is its own.
func (l *lock) fewer(c driver.Claim) int {
	if n := l.allows(c); n < c.Limit {
		return n
	}
	return 0
}

// admits says whether l, which others own, has room for c.
func (l *lock) admits(c driver.Claim) bool {
	return l.kind == kindOf(c) && (l.kind == shared || l.kind == limited && len(l.holders) < l.allows(c))
}

// frees is when there may be room in l, which has none for c now.
func (l *lock) frees(c driver.Claim) time.Time {
	first := l.expires
	if l.kind == limited && kindOf(c) == limited {
		for _, h := range l.holders {
			if h.expires.Before(first) {
				first = h.expires
			}
		}
	}
	return first
}
