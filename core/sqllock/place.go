package sqllock

import (
	"slices"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// place is one in the queue for a name: a process with all its goroutines.
type place struct {
	ID      string `json:"p"`
	Came    int64  `json:"c"`
	Dead    int64  `json:"d"`           // when it is dropped, unless it is heard of
	Channel string `json:"w,omitempty"` // where it is told; "" if it does not listen
	Shared  bool   `json:"s,omitempty"` // what it waits for
	Limit   int    `json:"n,omitempty"`
	Label   string `json:"l,omitempty"` // of its first waiter
}

// longest is longer than any place lives without a call: a place that claims more is from before the
// clock was set back.
const longest = 10_000_000

func (p place) alive(now int64) bool { return p.Dead > now && p.Dead <= now+longest }

func (p place) claim() driver.Claim { return driver.Claim{Shared: p.Shared, Limit: p.Limit} }

func (r *row) standing(id string) int {
	return slices.IndexFunc(r.Line, func(p place) bool { return p.ID == id })
}

// stand puts c's place at the end of the queue, or keeps it alive where it is. It returns where that is.
func (r *row) stand(c driver.Claim, channel string) int {
	i := r.standing(c.At())
	if i < 0 {
		i = len(r.Line)
		r.Line = append(r.Line, place{ID: c.At(), Came: r.now})
	}
	p := &r.Line[i]
	p.Dead, p.Channel = r.now+driver.PlaceLife(c.TTL).Microseconds(), channel
	p.Shared, p.Limit, p.Label = c.Shared, c.Limit, c.Label
	r.changed = true
	return i
}

// beat keeps c's place alive if it is in the queue. A claim that arrives late must not bring it back.
func (r *row) beat(c driver.Claim, channel string) {
	if r.standing(c.At()) >= 0 {
		r.stand(c, channel)
	}
}

// leave takes a place out of the queue, and says whether it was there.
func (r *row) leave(id string) bool {
	i := r.standing(id)
	if i < 0 {
		return false
	}
	r.Line = append(r.Line[:i:i], r.Line[i+1:]...)
	return true
}

// ahead says whether another place comes before c.
func (r *row) ahead(c driver.Claim) bool { return len(r.Line) > 0 && r.Line[0].ID != c.At() }

// tellFirst has the first place told if there is room for it.
func (r *row) tellFirst() {
	r.tell = nil
	if len(r.Line) > 0 && r.room(r.Line[0].claim()) {
		r.tell = &r.Line[0]
	}
}

// head is how a statement that reads no state tells the first place that the name is free.
func (r *row) head() string {
	if len(r.Line) == 0 || r.Line[0].Channel == "" {
		return ""
	}
	return r.Line[0].Channel + " " + r.Line[0].ID
}

// lineUp puts c in the queue. It says whether to try now, or else when the first reason to look again
// comes, and how many places are ahead. If beat is false, a place that has been heard of lately is not
// written again.
func (r *row) lineUp(c driver.Claim, channel string, beat bool) (try bool, again int64, ahead int) {
	if r.ownedBy(c.Token) { // this call is late: the claim was granted, and has left the queue
		return true, 0, 0
	}
	ahead = r.standing(c.At())
	life := driver.PlaceLife(c.TTL).Microseconds()
	if ahead < 0 || beat || r.Line[ahead].Dead-r.now < life*2/3 {
		ahead = r.stand(c, channel)
	}
	switch {
	case !r.room(c):
		return false, r.frees(c), ahead
	case ahead == 0:
		return true, 0, 0
	default:
		r.telling = true
		return false, r.Line[0].Dead, ahead
	}
}
