package driver

import (
	"fmt"
	"io"
	"log/slog"
	"time"
)

// Claim is what core asks a backend for. What goes beyond a backend's [Capabilities] is always zero: core
// refuses such requests itself.
//
// An exclusive claim owns its name alone. Claims with the Limit [Readers] can own a name together, and so
// can claims with a Limit above 1, as many as the Limit says. The two do not mix. Each owner has its own
// TTL. The name is free once the last owner has ended or released it. If limits differ, the smallest one
// counts, among the claim and the owners, and the answer says so.
type Claim struct {
	Name  string // what is locked; core has checked it
	Token string // the owner's secret, and its entry in the queue; new for every claim
	Label string // a readable note, stored beside the token; at most MaxLabel bytes

	TTL time.Duration // in whole milliseconds; 0 only in Renew, to verify

	// Limit is how many may hold the name together. 0 and 1 mean one; more needs Capabilities.Limit.
	// [Readers] is the read side of a read-write lock, and needs Capabilities.Shared.
	Limit int

	// Fences is how many consecutive fences to reserve for an exclusive claim; 0 means 1; more needs
	// Capabilities.Block. Acquire and Wait use it.
	Fences int

	// Dedup belongs to the marker of Scope; above 0 it needs Capabilities.Dedup. In Acquire and Wait, look
	// for the marker. In Release, leave it for this long: core sets it there only if the work is done.
	Dedup time.Duration
	Scope string // used with Dedup

	// Keep is how long the name must stay taken whatever becomes of the holder; above 0 it needs
	// Capabilities.Keep, except in Acquire and Wait. In Release it counts from now, and nobody owns the name for that
	// time. In Acquire and Wait it is at most TTL, and says that nobody may cut the TTL short: the grant must not be
	// a direct one, which is short at first.
	Keep time.Duration

	// Handoff is a hash of HandoffWidth characters, or "". Needs Capabilities.Detach. In Release, with
	// Keep: keep the name for a claim with the same hash. In Acquire: take the name over if it is kept
	// for this hash.
	Handoff string

	// Degrade says that the caller goes on without the service if that answers nobody: see Grant.Degraded. Only
	// exclusive claims without Dedup have it. It needs Capabilities.Degrade.
	Degrade bool

	// Heard is told each answer to a look of Wait that is no grant, as soon as it is there. It does not
	// block, and may be called from any goroutine, also after Wait has returned. It may be nil.
	Heard func(*Held)
}

// Readers is the Limit of a shared claim.
const Readers = -1

// HandoffWidth is the length of a Claim.Handoff in characters of base64url: 126 bits.
const HandoffWidth = 21

// MaxLabel is the length of the longest label, in bytes, that core lets through.
const MaxLabel = 256

// Shared says whether the claim is for the read side of a read-write lock.
func (c Claim) Shared() bool { return c.Limit == Readers }

// Exclusive says whether the claim must be the only holder of its name.
func (c Claim) Exclusive() bool { return c.Limit == 0 || c.Limit == 1 }

// Plain says whether the claim needs nothing but a free name, and may begin with a short TTL. Only such a
// claim is granted directly.
func (c Claim) Plain() bool {
	return c.Exclusive() && c.Dedup == 0 && c.Keep == 0 && c.Handoff == ""
}

// Tell reports an answer to c.Heard.
func (c Claim) Tell(h *Held) {
	if c.Heard != nil {
		c.Heard(h)
	}
}

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
	// Fence is the number of this grant: larger than that of every earlier grant of the name, and at
	// most 2^53. It is 0 if the backend mints none, and for claims with a Limit above 1. Shared grants
	// that overlap may have the same fence. It is larger than that of every exclusive grant before them.
	Fence uint64
	// Fences is how many consecutive fences are reserved, from Fence on: as many as were asked for, or
	// fewer; 0 means 1. core gives the grant to that many of its waiters, one after the other. So it is
	// at most [FencesBesideOthers] while others are in the queue.
	Fences int
	// TTL is what the backend really gave, if that is shorter than asked; 0 means as asked. A direct grant
	// has [PlaceLife] here.
	TTL time.Duration
	// Longest is the most that a renewal gives, whatever it asks for; 0 means as much as it asks for. Nobody trusts
	// a renewal for longer.
	Longest time.Duration
	// Limit is how many holders there may be, if another holder asked for fewer; 0 means as many as
	// asked for.
	Limit int
	// Degraded is the token of a grant that was made without the service, by a driver around another one, because the
	// claim has Degrade and the service answers nobody; "" for all other grants. It excludes others in this process only, and has
	// a token of its own: whatever the service makes of Claim.Token, that is released there.
	Degraded string
	// Outage is why the service could not answer, in a grant with Degraded. If it matches [ErrNotSent], the service never executes
	// the command.
	Outage error
	// Asked is when TTL began, or a time before that, read before the command was written. It may be
	// early, never late. The zero Time means when Acquire or Wait was called. It needs its monotonic
	// reading, so it comes from time.Now.
	Asked time.Time
}

// Capabilities says what a backend can do.
type Capabilities struct {
	Backend  string // for messages: "redis"
	Location string // the service's address just now, for messages; without a password; "" if it is not known
	Err      error  // what is wrong with the arguments of the constructor; core.New returns it

	// Punctual promises that every call returns soon after ctx's deadline, whatever the network does. In
	// return, core makes calls without a goroutine for each.
	Punctual bool
	// Forgets promises that nothing uses ctx, or a context derived from it, after a call has returned. No
	// hook of the client keeps one either. In return, core uses it again for another call.
	Forgets bool

	// Hears promises that a Wait under way learns of a release at once, from another process too. In
	// return, core calls Wait while its own release is still on the way, and for one [Recheck] at a time.
	// Without it, Wait polls: core calls it later, and for longer.
	Hears bool

	Queue  bool // it has a queue: waiters of all processes are served first come, first served
	Fence  bool // it mints Grant.Fence
	Block  bool // it reserves more than one fence: Claim.Fences
	Shared bool // the Limit Readers
	Limit  bool // a Limit above 1
	Dedup  bool // Claim.Dedup
	Keep   bool // Claim.Keep in Release
	Detach bool // Claim.Handoff
	// Degrade says that it is a driver around another one, and grants without the service: Claim.Degrade.
	Degrade bool

	MinTTL  time.Duration // shortest TTL; 0 means that core's own bound is enough
	MaxName int           // longest name in bytes; 0 means that core's own bound is enough
}
