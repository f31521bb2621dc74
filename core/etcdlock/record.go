package etcdlock

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// record is the value of a lock, or of one of several holders:
//
//	v1 <digest of the token> <TTL in ms> <label>       a lock with one owner
//	shared - <longest TTL in ms> <fence>               a lock with several holders: readers, with the fence
//	                                                   of the writer that let the others in, if one did,
//	limited - <longest TTL in ms>                      or those of a semaphore
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

const (
	owned   = "v1"
	shared  = "shared"
	limited = "limited"
	kept    = "kept"
	handoff = "handoff"
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

// ours says whether a lock is that of a client of this library.
func (r record) ours() bool {
	switch r.form {
	case owned, shared, limited, kept, handoff:
		return true
	}
	return false
}

// several says whether a lock has holders with keys of their own.
func (r record) several() bool { return r.form == shared || r.form == limited }

// left says whether a release has left the lock taken.
func (r record) left() bool { return r.form == kept || r.form == handoff }

// formOf is the form of a lock that c owns.
func formOf(c driver.Claim) string {
	switch {
	case c.Shared:
		return shared
	case c.Exclusive():
		return owned
	default:
		return limited
	}
}

func ownerOf(c driver.Claim) record { return record{owned, digest(c.Token), c.TTL, c.Label} }

func holderOf(c driver.Claim) record {
	return record{strconv.Itoa(c.Limit), digest(c.Token), c.TTL, c.Label}
}

// groupLife is how long several holders' lock lasts at least without renewals, so that holders with longer
// TTLs than that of the first one can join.
const groupLife = time.Minute

func groupOf(c driver.Claim) record { return record{formOf(c), "-", max(c.TTL, groupLife), ""} }

// leftBy is what a release with Keep leaves. Its digest is another one than that of the owner.
func leftBy(c driver.Claim) record {
	if c.Handoff != "" {
		return record{handoff, digest(c.Handoff), c.Keep, c.Label}
	}
	return record{kept, digest("kept " + c.Token), c.Keep, c.Label}
}
