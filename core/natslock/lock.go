package natslock

import (
	"encoding/json"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// A value is a form and JSON. Anything else is foreign. That of an entry in the queue, and of a marker, is a record. That of
// a lock has one record, or several:
//
//	v1 {"kind":"shared","holders":[{"id":"…","ttl":10000,"order":7,"since":…,"ends":…,"label":"…"}, …]}
const form = "v1 "

// lock is what the value of a lock's key says: who has the name.
//
// The kind is the one that [inspect.LeaseInfo] shows. Only shared and limited locks have several holders. That of a name
// that a release has left taken stands for nobody: its id is that of the hand-off, or of no token.
type lock struct {
	Kind    inspect.HoldKind `json:"kind"`
	Holders []record         `json:"holders"`
}

// record is one of those who have a name, or wait for it.
//
// Its times are by the server's clock, in ms since 1970. Who writes a value does not know when the server will have it.
// So 0 stands for the time of the entry itself, and of its revision: that is when this one came, or was renewed. The
// next one who writes the value fills in what it has read.
type record struct {
	ID    string `json:"id"`  // a digest
	TTL   int64  `json:"ttl"` // in ms
	Limit int    `json:"limit,omitempty"`
	Order uint64 `json:"order,omitempty"` // the revision that granted it, or put it into the queue
	Since int64  `json:"since,omitempty"` // when that was
	Ends  int64  `json:"ends,omitempty"`  // its TTL, unless it is renewed
	Label string `json:"label,omitempty"`
}

// maxHolders is how many can have a name together. A renewal writes them all.
const maxHolders = 512

func (r record) ttl() time.Duration { return time.Duration(r.TTL) * time.Millisecond }

// left is what is left of its TTL, by the server's clock.
func (r record) left(at time.Time) time.Duration {
	if r.Ends == 0 { // it is not written yet
		return r.ttl()
	}
	return time.UnixMilli(r.Ends).Sub(at)
}

// read fills in what the entry says that the record is in.
func (r *record) read(e *entry) {
	if r.Order == 0 {
		r.Order, r.Since = e.revision, e.time.UnixMilli()
	}
	if r.Ends == 0 {
		r.Ends = e.time.Add(r.ttl() + time.Millisecond - 1).UnixMilli()
	}
}

func (r record) known() bool { return len(r.ID) == idWidth && r.TTL > 0 }

// valueOf is the value that says v.
func valueOf(v any) string {
	text, _ := json.Marshal(v) // it has nothing that JSON has no form for
	return form + string(text)
}

// says reads a value, if it has our form.
func (e *entry) says(v any) bool {
	text, ok := strings.CutPrefix(e.value, form)
	return ok && json.Unmarshal([]byte(text), v) == nil
}

// recordOf reads the value of an entry in the queue, or of a marker. It is zero if that is foreign.
func recordOf(e *entry) (r record) {
	if !e.says(&r) || !r.known() {
		return record{}
	}
	r.read(e)
	return r
}

// lockOf reads the value of a lock's key. Its kind is foreign if that is other software's.
func lockOf(e *entry) (l lock) {
	if !e.says(&l) || !l.known() {
		return lock{Kind: inspect.HoldForeign}
	}
	for i := range l.Holders {
		l.Holders[i].read(e)
	}
	return l
}

func (l lock) known() bool {
	if slices.ContainsFunc(l.Holders, func(r record) bool { return !r.known() }) {
		return false
	}
	return l.several() && len(l.Holders) > 0 || (l.left() || l.Kind == inspect.HoldExclusive) && len(l.Holders) == 1
}

// several says whether the lock can have several holders.
func (l lock) several() bool { return l.Kind == inspect.HoldShared || l.Kind == inspect.HoldLimited }

// left says whether a release has left the name taken.
func (l lock) left() bool { return l.Kind == inspect.HoldKept || l.Kind == inspect.HoldHandoff }

// kindOf is the kind of a lock that c owns.
func kindOf(c driver.Claim) inspect.HoldKind {
	switch {
	case c.Shared():
		return inspect.HoldShared
	case c.Exclusive():
		return inspect.HoldExclusive
	default:
		return inspect.HoldLimited
	}
}

func holderOf(c driver.Claim) record {
	h := record{ID: digest(c.Token), TTL: c.TTL.Milliseconds(), Label: c.Label}
	if kindOf(c) == inspect.HoldLimited {
		h.Limit = c.Limit
	}
	return h
}

// leftBy is what a release with Keep leaves. Its digest is another one than that of the owner.
func leftBy(c driver.Claim) lock {
	h := record{ID: digest("kept " + c.Token), TTL: c.Keep.Milliseconds(), Label: c.Label}
	if c.Handoff == "" {
		return lock{inspect.HoldKept, []record{h}}
	}
	h.ID = digest(c.Handoff)
	return lock{inspect.HoldHandoff, []record{h}}
}

// alive is the lock with those holders only whose time is not over.
func (l lock) alive(at time.Time) lock {
	l.Holders = slices.DeleteFunc(slices.Clone(l.Holders), func(h record) bool { return h.left(at) <= 0 })
	return l
}

// with is the lock with h as it is now, in the place of what it was.
func (l lock) with(h record) lock {
	l = l.without(h.ID)
	l.Holders = append(l.Holders, h)
	return l
}

func (l lock) without(id string) lock {
	l.Holders = slices.DeleteFunc(slices.Clone(l.Holders), func(h record) bool { return h.ID == id })
	return l
}

// lasts is how long a key has to last that is written after the given time, so that no holder outlives it.
func (l lock) lasts(at time.Time) (d time.Duration) {
	for _, h := range l.Holders {
		d = max(d, h.left(at))
	}
	return d
}
