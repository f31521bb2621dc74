package driver

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Claim is what core asks a backend for. Fields that go beyond a backend's [Capabilities] are
// always zero: core refuses such requests itself.
//
// An exclusive claim owns its name alone. Shared claims can own a name together, and so can
// claims with a Limit above 1, as many as the Limit says. Shared and limited claims do not mix.
// Each owner has its own TTL. The name is free once the last owner has ended or released it. If
// limits differ, the smallest one counts, among the claim and the owners, and the answer says so.
type Claim struct {
	Name  string // what is locked; core has checked it
	Token string // the owner's secret; new for every tenure
	Label string // a readable note, stored beside the token; at most MaxLabel bytes

	TTL time.Duration // in whole milliseconds; 0 only in Renew, to verify

	Shared bool // read side of a read-write lock; needs Capabilities.Shared
	Limit  int  // holders allowed; 0 means 1; more than 1 needs Capabilities.Limit
	Fences int  // consecutive fences to reserve for an exclusive claim; 0 means 1; more needs Capabilities.Block

	Floor uint64 // Acquire: once it is granted, all fences that are reserved later are larger; needs Capabilities.Floor

	Place string // place in the queue for Name, see Queuer; "" stands for Token
	Offer uint64 // number of the offer at Place, see Offerer; 0 if there is none
	Rank  uint64 // where Place stands in the queue, see Ranker; 0 means at its end

	Scope string        // dedup scope, used with Dedup
	Dedup time.Duration // Acquire: if above 0, look for the marker of Scope; Release: how long its marker lasts
	Keep  time.Duration // Release: how long the name stays taken, by nobody; needs Capabilities.Keep
	Mark  bool          // Release: leave the dedup marker

	// Handoff is a hash of HandoffWidth characters, or "". Needs Capabilities.Detach. In Release,
	// with Keep: keep the name for a claim with the same hash. In Acquire: take the name over if it
	// is kept for this hash.
	Handoff string
}

// HandoffWidth is the length of a Claim.Handoff in characters of base64url: 126 bits.
const HandoffWidth = 21

// MaxTurns is the largest Claim.Fences that core asks for. TurnsBesideOthers is the most that a
// backend reserves while other places are in the queue.
const (
	MaxTurns          = 256
	TurnsBesideOthers = 32
)

// MaxLabel is the length of the longest label, in bytes, that core lets through.
const MaxLabel = 256

// At returns the claim's place in the queue.
func (c Claim) At() string { return cmp.Or(c.Place, c.Token) }

// Format prints the claim without its token, for every verb, so that it is safe to log.
func (c Claim) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, c.redacted()) // fmt has no way to return the error
}

// LogValue returns the claim without its token, for slog.
func (c Claim) LogValue() slog.Value { return slog.StringValue(c.redacted()) }

// MarshalText returns the claim without its token, for encoders.
func (c Claim) MarshalText() ([]byte, error) { return []byte(c.redacted()), nil }

func (c Claim) redacted() string { return fmt.Sprintf("claim(%q, ttl %s)", c.Name, c.TTL) }

// Grant says that a claim owns its name.
type Grant struct {
	// Fence is the number of this tenure: larger than that of every earlier tenure of the name,
	// and at most 2^53. It is 0 if the backend mints none, and for claims with a Limit above 1.
	// Shared tenures that overlap may have the same fence. It is larger than that of every
	// exclusive tenure before them.
	Fence uint64
	// Fences is how many consecutive fences are reserved, from Fence on: as many as were asked
	// for, or fewer; 0 means 1. core gives the tenure to that many of its waiters, one after the
	// other. So it is at most [TurnsBesideOthers] while other places are in the queue.
	Fences int
	// TTL is what the backend really gave, if that is shorter than asked; 0 means as asked.
	TTL time.Duration
	// Longest is as in driver.Grant.
	Longest time.Duration
	// Limit is how many holders there may be, if another holder asked for fewer; 0 means as many
	// as asked for.
	Limit int
}

// Exclusive says whether the claim must be the only holder of its name.
func (c Claim) Exclusive() bool { return !c.Shared && c.Limit <= 1 }

// Capabilities says what a backend can do.
type Capabilities struct {
	Backend string // for messages: "redis"

	// Punctual promises two things. Every call returns soon after ctx's deadline, whatever the
	// network does. And nothing uses ctx, or a context derived from it, after the call has
	// returned: core uses it again for another call. In return, core can make calls without a
	// goroutine for each.
	Punctual bool

	Fence  bool // it mints Grant.Fence
	Block  bool // it reserves more than one fence: Claim.Fences
	Floor  bool // Claim.Floor
	Shared bool // Claim.Shared
	Limit  bool // Claim.Limit above 1
	Dedup  bool // Claim.Dedup and Claim.Mark
	Keep   bool // Claim.Keep
	Detach bool // Claim.Handoff

	MinTTL  time.Duration // shortest TTL; 0 means that core's own bound is enough
	MaxName int           // longest name in bytes; 0 means that core's own bound is enough
}
