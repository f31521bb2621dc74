package sqllock

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// entry is a token in the queue for a name, as its last look has left it.
type entry struct {
	Token   string `json:"t"`
	Came    int64  `json:"c"`
	Dead    int64  `json:"d"`           // when it is dropped, unless it looks again
	Channel string `json:"w,omitempty"` // where it is told; "" if it does not listen
	Limit   int    `json:"n,omitempty"` // what it waits for
	Label   string `json:"l,omitempty"`
}

// longest is longer than any entry lives without a look: one that claims more is from before the
// clock was set back.
const longest = 10_000_000

func (e entry) alive(now int64) bool { return e.Dead > now && e.Dead <= now+longest }

// stand puts c at the end of the queue, or keeps it alive where it is. An entry that has looked lately is written again
// only if beat says so. Who owns the name is never queued: a look can be late. Nor is who finds the work done.
func (r *row) stand(c driver.Claim, channel string, beat bool) {
	if r.done != nil || r.ownedBy(c.Token) {
		return
	}
	life := driver.PlaceLife(c.TTL).Microseconds()
	i := r.standing(c.Token)
	if i < 0 {
		i, beat = len(r.Queue), true
		r.Queue = append(r.Queue, entry{Token: c.Token, Came: r.now})
	}
	if e := &r.Queue[i]; beat || e.Dead-r.now < life*2/3 {
		e.Dead, e.Channel, e.Limit, e.Label = r.now+life, channel, c.Limit, c.Label
		r.changed = true
	}
}

// standing is where a token is in the queue, or -1.
func (r *row) standing(token string) int {
	return slices.IndexFunc(r.Queue, func(e entry) bool { return e.Token == token })
}

// leave takes a token out of the queue.
func (r *row) leave(token string) {
	if i := r.standing(token); i >= 0 {
		r.Queue = slices.Delete(slices.Clone(r.Queue), i, i+1)
		r.changed = true
	}
}

// first is whom to tell that there is room, as its channel and its token: "" if there is no room, or it does not listen.
func (r *row) first() string {
	if len(r.Queue) == 0 || !r.room(driver.Claim{Token: r.Queue[0].Token, Limit: r.Queue[0].Limit}) {
		return ""
	}
	return r.head()
}

// head is the first of the queue, for a statement that reads no state and frees the name.
func (s state) head() string {
	if len(s.Queue) == 0 || s.Queue[0].Channel == "" {
		return ""
	}
	return s.Queue[0].Channel + " " + s.Queue[0].Token
}

const (
	// firstPoll is how soon the first in a queue looks again if nobody tells it. Its pauses grow with the time that it has
	// waited for the same owner, to lastPoll: who has held the name for long will most likely hold it for a while. Those
	// behind it look less often. A look at SQLite costs no server anything.
	firstPoll      = 10 * time.Millisecond
	lastPoll       = 250 * time.Millisecond
	lastPollSQLite = 25 * time.Millisecond
)

func (d Dialect) lastPoll() time.Duration {
	if d == SQLite {
		return lastPollSQLite
	}
	return lastPoll
}

// pause is how long a waiter that nobody tells waits before its next look.
func (r *row) pause(c driver.Claim, last time.Duration) time.Duration {
	ahead := r.standing(c.Token)
	if ahead < 0 { // it owns the name otherwise than it asks for
		return last
	}
	waited := micros(r.now - max(r.Queue[ahead].Came, r.lastChange()))
	return min(max(waited/8, firstPoll), last) * time.Duration(ahead+1)
}

// lastChange is when the name was last taken or freed, as far as the fences tell: 0 if the clock was set back. A block of fences
// may be a little ahead of it.
func (r *row) lastChange() int64 {
	const block = driver.MaxFences
	at := r.fence
	for _, h := range r.Holders {
		at = max(at, h.Since)
	}
	if at > r.now+block {
		return 0
	}
	return min(at, r.now)
}

// turn is what the first of a queue writes to take the name, without reading the row once more. It works if the state
// is as this process has seen it last, and the entry is not dead: then it is still the first one.
type turn struct {
	before, after, head string // the states with and without the entry, and the head of the latter
	fences, dead        int64
}

// turnOf is c's turn, nil unless it is the first and needs nothing but a free name. The state must be as it is in the table.
func (r *row) turnOf(c driver.Claim) *turn {
	if r.together() || r.standing(c.Token) != 0 || !c.Exclusive() || c.Dedup > 0 || c.Handoff != "" {
		return nil
	}
	rest := state{Queue: r.Queue[1:]}
	return &turn{r.encode(), rest.encode(), rest.head(), fencesOf(c, len(rest.Queue) > 0), r.Queue[0].Dead}
}
