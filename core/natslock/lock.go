package natslock

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// lock is what the value of a lock's key says: who has the name. It is a record if the name has one owner, and otherwise
//
//	v2 {"kind":"shared","holders":[{"id":"…","ttl":10000,"order":7,"since":…,"ends":…,"label":"…"}, …]}
//
// The kind is the one that [driver.LeaseInfo] shows. Only shared and limited locks have several holders. That of a name
// that a release has left taken stands for nobody: its id is that of the hand-off, or of no token.
type lock struct {
	Kind    driver.HoldKind `json:"kind"`
	Holders []holder        `json:"holders"`
}

// holder is one of those who have a name.
//
// Its times are by the server's clock, in ms since 1970. Who writes a value does not know when the server will have it.
// So 0 stands for the time of the entry itself, and of its revision: that is when this holder came, or was renewed. The
// next one who writes the value fills in what it has read.
type holder struct {
	ID    string `json:"id"`  // a digest
	TTL   int64  `json:"ttl"` // in ms
	Limit int    `json:"limit,omitempty"`
	Order uint64 `json:"order,omitempty"` // the revision that granted it
	Since int64  `json:"since,omitempty"` // its grant
	Ends  int64  `json:"ends,omitempty"`  // its TTL, unless it is renewed
	Label string `json:"label,omitempty"`
}

const severalForm = "v2 "

// maxHolders is how many can have a name together. A renewal writes them all.
const maxHolders = 512

func (h holder) ttl() time.Duration { return time.Duration(h.TTL) * time.Millisecond }

// left is what is left of its TTL, by the server's clock.
func (h holder) left(at time.Time) time.Duration {
	if h.Ends == 0 { // it is not written yet
		return h.ttl()
	}
	return time.UnixMilli(h.Ends).Sub(at)
}

// String is the value of the lock's key.
func (l lock) String() string {
	if l.Kind == driver.HoldExclusive {
		h := l.Holders[0]
		return record{h.ID, h.ttl(), h.Order, h.Since, h.Label}.String()
	}
	text, _ := json.Marshal(l) // it has nothing that JSON has no form for
	return severalForm + string(text)
}

// lockOf reads the value of an entry. Its kind is foreign if that is other software's.
func lockOf(e *entry) (l lock) {
	if r := parse(e); r.id != "" {
		l = lock{driver.HoldExclusive, []holder{{ID: r.id, TTL: r.ttl.Milliseconds(), Order: r.order, Since: r.since, Label: r.label}}}
	} else if text, ok := strings.CutPrefix(e.value, severalForm); !ok || json.Unmarshal([]byte(text), &l) != nil || !l.known() {
		return lock{Kind: driver.HoldForeign}
	}
	for i := range l.Holders {
		h := &l.Holders[i]
		if h.Order == 0 {
			h.Order, h.Since = e.revision, e.time.UnixMilli()
		}
		if h.Ends == 0 {
			h.Ends = e.time.Add(h.ttl() + time.Millisecond - 1).UnixMilli()
		}
	}
	return l
}

// known says whether the lock is one that [lock.String] writes as v2.
func (l lock) known() bool {
	for _, h := range l.Holders {
		if len(h.ID) != idWidth || h.TTL <= 0 {
			return false
		}
	}
	return l.several() && len(l.Holders) > 0 || l.left() && len(l.Holders) == 1
}

// several says whether the lock can have several holders.
func (l lock) several() bool { return l.Kind == driver.HoldShared || l.Kind == driver.HoldLimited }

// left says whether a release has left the name taken.
func (l lock) left() bool { return l.Kind == driver.HoldKept || l.Kind == driver.HoldHandoff }

// kindOf is the kind of a lock that c owns.
func kindOf(c driver.Claim) driver.HoldKind {
	switch {
	case c.Shared:
		return driver.HoldShared
	case c.Exclusive():
		return driver.HoldExclusive
	default:
		return driver.HoldLimited
	}
}

func holderOf(c driver.Claim) holder {
	h := holder{ID: digest(c.Token), TTL: c.TTL.Milliseconds(), Label: c.Label}
	if kindOf(c) == driver.HoldLimited {
		h.Limit = c.Limit
	}
	return h
}

// leftBy is what a release with Keep leaves. Its digest is another one than that of the owner.
func leftBy(c driver.Claim) lock {
	h := holder{ID: digest("kept " + c.Token), TTL: c.Keep.Milliseconds(), Label: c.Label}
	if c.Handoff == "" {
		return lock{driver.HoldKept, []holder{h}}
	}
	h.ID = digest(c.Handoff)
	return lock{driver.HoldHandoff, []holder{h}}
}

// alive is the lock with those holders only whose time is not over.
func (l lock) alive(at time.Time) lock {
	l.Holders = slices.DeleteFunc(slices.Clone(l.Holders), func(h holder) bool { return h.left(at) <= 0 })
	return l
}

// with is the lock with h as it is now, in the place of what it was.
func (l lock) with(h holder) lock {
	l = l.without(h.ID)
	l.Holders = append(l.Holders, h)
	return l
}

func (l lock) without(id string) lock {
	l.Holders = slices.DeleteFunc(slices.Clone(l.Holders), func(h holder) bool { return h.ID == id })
	return l
}

// lasts is how long a key has to last that is written after the given time, so that no holder outlives it.
func (l lock) lasts(at time.Time) (d time.Duration) {
	for _, h := range l.Holders {
		d = max(d, h.left(at))
	}
	return d
}
