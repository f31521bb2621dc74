package etcdlock

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// record is the value of a lock, or of the key of one of several holders:
//
//	v1 <digest of the token> <TTL in ms> <label>       a lock with one owner
//	kept <digest> <time in ms> <label>                 a lock that a release has left taken,
//	handoff <digest of the hand-off> <time in ms> …    or has left for a hand-off
//	<limit, 0 for a reader> <digest> <TTL in ms> …     one of several holders
//
// The label may have spaces. Anything else is foreign.
type record struct {
	form  string
	id    string // a digest
	ttl   time.Duration
	label string
}

// Forms of a name. There is no lock where holders share it.
const (
	owned   = "v1"
	kept    = "kept"
	handoff = "handoff"
	shared  = "shared"
	limited = "limited"
)

func (r record) String() string {
	return fmt.Sprintf("%s %s %d %s", r.form, r.id, r.ttl.Milliseconds(), r.label)
}

// read is what a value says; all is zero if that is no record.
func read(value []byte) record {
	parts := strings.SplitN(string(value), " ", 4)
	if len(parts) != 4 {
		return record{}
	}
	ms, err := strconv.ParseInt(parts[2], 10, 64)
	if err != nil {
		return record{}
	}
	return record{parts[0], parts[1], time.Duration(ms) * time.Millisecond, parts[3]}
}

// left says whether a release has left the lock taken.
func (r record) left() bool { return r.form == kept || r.form == handoff }

// formOf is the form of a name that c owns.
func formOf(c driver.Claim) string {
	switch {
	case c.Shared():
		return shared
	case c.Exclusive():
		return owned
	default:
		return limited
	}
}

// holderOf is that of c as a holder: the lock itself, or the key of one of several.
func holderOf(c driver.Claim) record {
	form := owned
	if !c.Exclusive() {
		form = strconv.Itoa(max(0, c.Limit))
	}
	return record{form, digest(c.Token), c.TTL, c.Label}
}

// leftBy is what a release with Keep leaves. Its digest is another one than that of the owner.
func leftBy(c driver.Claim) record {
	if c.Handoff != "" {
		return record{handoff, digest(c.Handoff), c.Keep, c.Label}
	}
	return record{kept, digest("kept " + c.Token), c.Keep, c.Label}
}
