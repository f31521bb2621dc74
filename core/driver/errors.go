package driver

import (
	"errors"
	"time"
)

var (
	// ErrNotOwner says that the token does not own the name: it never did, or no longer
	// does. It is an answer of the server, never a guess.
	ErrNotOwner = errors.New("driver: not the owner")

	// ErrNotSent says that the server has certainly not executed the call, and will not
	// execute it later: a refused dial, a context that had ended before anything was
	// written, a refusal that precedes execution. Backends put it on the client's error with
	// [NotSent].
	ErrNotSent = errors.New("driver: nothing was executed")

	// ErrUnmarked says of a Release with Mark that the name is free, or kept, as was asked for, and
	// that the dedup marker could not be left. It is not to be sent again: the token owns nothing any
	// more. Backends wrap it together with the server's error. Where both go in one step, or
	// not at all, there is no such error.
	ErrUnmarked = errors.New("driver: released without its dedup marker")

	// ErrCannotAnswer says that the service cannot answer anybody just now: it is loading, has
	// no leader or no quorum, or is a replica that only reads. Backends put it on the client's
	// error with [Unavailable], and ErrNotSent too where that holds. What the net package says
	// of a connection they leave as it is; see [CannotAnswer].
	ErrCannotAnswer = errors.New("driver: the service cannot answer")
)

// Held is the refusal of an Acquire whose name has another owner.
type Held struct {
	Label     string        // the owner's label, "" if it left none or is foreign
	Remaining time.Duration // until the owner's TTL ends; 0 if that is not known
	Exact     bool          // Remaining is when the name comes free, not just a bound
	Limit     int           // how many holders there may be, where another one asked for fewer; else 0
}

func (*Held) Error() string { return "driver: held by another owner" }

// Duplicate is the refusal of an Acquire with Dedup for whose scope a marker stands.
type Duplicate struct {
	Label string // of the claim that left the marker
}

func (*Duplicate) Error() string { return "driver: a dedup marker stands" }
