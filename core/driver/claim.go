package driver

import (
	"cmp"
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Claim is what core asks a backend for. Fields beyond a backend's [Capabilities] are
// zero: core refuses such requests before they get here.
type Claim struct {
	Name  string // what is locked; core has checked it
	Token string // the owner, new for every tenure; a secret
	Label string // readable note stored beside the token, of at most MaxLabel bytes

	TTL time.Duration // whole milliseconds; 0 only in Renew, to verify

	Shared bool // read side of a read-write lock; needs Capabilities.Shared
	Limit  int  // holders allowed; 0 means 1; more needs Capabilities.Limit
	Fences int  // consecutive fences to reserve, if it is exclusive; 0 means 1; more needs Capabilities.Block

	Fence uint64 // Renew, and Release with a Handoff: of the turn under way, for [Inspector]; 0 if there is none

	Place string // the caller's place in the line for Name, see Queuer; "" stands for Token

	Scope string        // dedup scope, meaningful with Dedup
	Dedup time.Duration // Acquire: above zero, the marker of Scope is looked at; Release: its window
	Keep  time.Duration // Release: the name stays taken for so long, by nobody; needs Capabilities.Keep
	Mark  bool          // Release: leave the dedup marker

	// Handoff is a hash of HandoffWidth characters, or "". Release, with Keep: who comes with it gets
	// the name. Acquire: take the name over if it is kept for this hand-off. Needs Capabilities.Detach.
	Handoff string
}

// HandoffWidth is how long a Claim.Handoff is, in characters of base64url: 126 bits.
const HandoffWidth = 21

// MaxTurns is the most that core asks for in Claim.Fences, and TurnsBesideOthers the most
// that a backend reserves while others stand in line.
const (
	MaxTurns          = 256
	TurnsBesideOthers = 32
)

// MaxLabel is the longest label, in bytes, that core lets through.
const MaxLabel = 256

// At is the claim's place in line.
func (c Claim) At() string { return cmp.Or(c.Place, c.Token) }

// Format prints the claim without its token, for every verb: what is printed may be
// logged.
func (c Claim) Format(f fmt.State, _ rune) {
	_, _ = io.WriteString(f, c.redacted()) // fmt has no way to return the error
}

// LogValue gives slog the claim without its token.
func (c Claim) LogValue() slog.Value { return slog.StringValue(c.redacted()) }

// MarshalText gives encoders the claim without its token.
func (c Claim) MarshalText() ([]byte, error) { return []byte(c.redacted()), nil }

func (c Claim) redacted() string { return fmt.Sprintf("claim(%q, ttl %s)", c.Name, c.TTL) }

// Grant is a backend's "yours".
type Grant struct {
	// Fence is the number of this tenure, larger than that of every earlier tenure of the
	// name, at most 2^53; 0 if the backend mints none. Shared tenures that overlap may have
	// the same one: it is larger than that of every exclusive tenure before them. Claims with
	// a Limit above 1 get none.
	Fence uint64
	// Fences says how many consecutive fences, from Fence on, are reserved: as many as were
	// asked for, or fewer; 0 means 1. core gives the tenure to as many of its waiters, one
	// after the other, so where others stand in line it is at most [TurnsBesideOthers].
	Fences int
	// TTL is what the backend really gave, where that is shorter than asked; 0 means as
	// asked.
	TTL time.Duration
	// Limit is how many holders there may be, where another one asked for fewer; 0 means as
	// many as asked for.
	Limit int
}

// Exclusive says that the claim suffers no other holder.
func (c Claim) Exclusive() bool { return !c.Shared && c.Limit <= 1 }

// Capabilities says what a backend can do.
type Capabilities struct {
	Backend string // for messages: "redis"

	// Punctual promises that every call returns soon after ctx's deadline, whatever the
	// network does, and that nothing uses ctx, or what was derived from it, once the call has
	// returned. It spares a goroutine for each call whose ctx nothing else can end.
	Punctual bool

	Fence  bool // Grant.Fence is minted
	Block  bool // Claim.Fences above 1 is honoured
	Shared bool // Claim.Shared
	Limit  bool // Claim.Limit above 1
	Dedup  bool // Claim.Dedup and Claim.Mark
	Keep   bool // Claim.Keep
	Detach bool // Claim.Handoff

	MinTTL  time.Duration // shortest TTL; 0 means that core's own bound is enough
	MaxName int           // longest name in bytes; 0 means that core's own bound is enough
}
