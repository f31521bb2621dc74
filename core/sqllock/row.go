package sqllock

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// row is what the table has about a name, as it was read. Its methods decide what a claim gets; what
// they change is written back only if nobody else has written the row since. Times are microseconds by
// the database's clock.
//
// token says who has the name until expires: nobody (""), several readers or permits (their holders are
// in the state), a release that left it taken, or the exclusive owner with that token.
type row struct {
	name    string
	there   bool // in the table
	token   string
	label   string
	fence   int64 // the last one minted
	expires int64
	turn    int64 // the fence of the holder; negative: the first of a block that counts, see HeldInTx
	state
	raw string // the state, as it was read

	now     int64   // when it was read
	standby bool    // by a server that takes no writes
	done    *string // label of the claim's dedup marker, if that stands
	changed bool    // to be written
	durable bool    // and it has to wait for the disk: more than the queue has changed
	marks   bool    // with the claim's dedup marker
	telling bool    // the first in the queue is to be told, if there is room for it
}

// state is what the table's simple columns have no room for. It is "" for a name that is free, or has
// an exclusive owner and no queue.
type state struct {
	Holders []holder `json:"h,omitempty"`
	Queue   []entry  `json:"q,omitempty"`
}

// holder is one of several that own a name together.
type holder struct {
	Token string `json:"t"`
	Limit int    `json:"n,omitempty"` // 0 for a reader
	Ends  int64  `json:"e"`
	Since int64  `json:"s,omitempty"` // its grant
	Label string `json:"l,omitempty"`
}

// The tokens of names without an exclusive owner. core's tokens begin with none of these characters.
const (
	byReaders  = "+"
	byPermits  = "*"
	keptFor    = "=" // begins the token of a name that a release has left taken
	handoffFor = "!" // as keptFor, and the hand-off follows
)

func (r *row) free() bool     { return r.token == "" }
func (r *row) together() bool { return r.token == byReaders || r.token == byPermits }
func (r *row) kept() bool {
	return strings.HasPrefix(r.token, keptFor) || strings.HasPrefix(r.token, handoffFor)
}
func (r *row) exclusive() bool { return !r.free() && !r.together() && !r.kept() }

// settle reads the state, and drops what is over.
func (r *row) settle() error {
	if r.raw != "" {
		if err := json.Unmarshal([]byte(r.raw), &r.state); err != nil {
			return fmt.Errorf("sqllock: the state of a row: %w", err)
		}
	}
	r.Queue = slices.DeleteFunc(r.Queue, func(e entry) bool { return !e.alive(r.now) })
	if !r.together() {
		r.Holders = nil
	}
	r.expireHolders()
	return nil
}

// expireHolders drops the holders whose time is over, and the owner if that was the last one.
func (r *row) expireHolders() {
	if r.together() {
		r.expires = 0
		r.Holders = slices.DeleteFunc(r.Holders, func(h holder) bool { return h.Ends <= r.now })
		for _, h := range r.Holders {
			r.expires = max(r.expires, h.Ends)
		}
	}
	if r.expires <= r.now {
		r.vacate()
	}
}

func (r *row) vacate() { r.token, r.label, r.expires, r.Holders = "", "", 0, nil }

// encode is the state as the table has it.
func (s state) encode() string {
	if len(s.Holders) == 0 && len(s.Queue) == 0 {
		return ""
	}
	text, _ := json.Marshal(s) //nolint:errchkjson // it has strings and numbers only
	return string(text)
}

// encodeWithin is encode. If that is more than most bytes, the labels are left out: there is room for more holders and
// waiters than for what is only shown of them.
func (r *row) encodeWithin(most int) (string, error) {
	text := r.encode()
	if len(text) <= most {
		return text, nil
	}
	for i := range r.Holders {
		r.Holders[i].Label = ""
	}
	for i := range r.Queue {
		r.Queue[i].Label = ""
	}
	if text = r.encode(); len(text) > most {
		return "", fmt.Errorf("sqllock: %d holders and %d waiters are more than a row has room for", len(r.Holders), len(r.Queue))
	}
	return text, nil
}

func (r *row) ownedBy(token string) bool {
	if r.together() {
		return r.holder(token) >= 0
	}
	return r.exclusive() && r.token == token
}

// owns says whether c's token owns the name as c wants it. A writer that became a reader does not own it alone.
func (r *row) owns(c driver.Claim) bool { return r.token == kind(c) && r.ownedBy(c.Token) }

// holder is where a token is among the holders, or -1.
func (r *row) holder(token string) int {
	return slices.IndexFunc(r.Holders, func(h holder) bool { return h.Token == token })
}

// kind is the token of a name that claims like c have.
func kind(c driver.Claim) string {
	switch {
	case c.Shared():
		return byReaders
	case c.Exclusive():
		return c.Token
	default:
		return byPermits
	}
}

// room says whether c, which owns nothing, can own the name, whoever is in the queue.
func (r *row) room(c driver.Claim) bool {
	switch {
	case r.free():
		return true
	case !r.together() || r.token != kind(c):
		return false
	default:
		return c.Shared() || len(r.Holders) < r.allows(c)
	}
}

// allows is how many holders there may be if c is one of them.
func (r *row) allows(c driver.Claim) int {
	limit := c.Limit
	for _, h := range r.Holders {
		limit = min(limit, h.Limit)
	}
	return limit
}

// fewer is what c is told of the limit: 0 if it is its own.
func (r *row) fewer(c driver.Claim) int {
	if r.token != byPermits || kind(c) != byPermits {
		return 0
	}
	if n := r.allows(c); n < c.Limit {
		return n
	}
	return 0
}

// held is how c is refused, for which there is no room.
func (r *row) held(c driver.Claim) *driver.Held {
	frees := r.expires
	if r.token == byPermits && kind(c) == byPermits {
		for _, h := range r.Holders {
			frees = min(frees, h.Ends)
		}
	}
	return &driver.Held{
		Label: r.label, Remaining: micros(frees - r.now), Exact: strings.HasPrefix(r.token, keptFor), Limit: r.fewer(c),
	}
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }
