package driver

import (
	"errors"
	"time"
)

var (
	// ErrNotOwner means that the token does not own the name: it never did, or no longer does. It is an
	// answer of the server, never a guess.
	ErrNotOwner = errors.New("driver: not the owner")

	// ErrNotSent means that the server certainly has not executed the call, and will not execute it
	// later. Examples are a refused dial, a context that had ended before anything was written, and a
	// refusal before execution. Backends mark the client's error with [NotSent].
	ErrNotSent = errors.New("driver: nothing was executed")

	// ErrUnmarked means that a Release with Dedup has freed the name, or kept it, as asked, but could not
	// leave the dedup marker. core does not send it again: the token owns nothing any more. Backends
	// wrap it together with the server's error. A backend that does both or neither never returns it.
	ErrUnmarked = errors.New("driver: released without its dedup marker")

	// ErrCannotAnswer means that the service cannot answer anybody just now: it is loading, has no
	// leader or no quorum, or is a read-only replica. Backends mark the client's error with
	// [Unavailable], and with [NotSent] too if that is true. They need not mark errors of the net
	// package; see [Explain].
	ErrCannotAnswer = errors.New("driver: the service cannot answer")

	// ErrRefused means that the service answers, and refuses this client as it is set up: a wrong
	// password, a missing permission, a command that is forbidden there. Another attempt would end the
	// same, so core tells its caller at once. Backends mark the client's error with [Refused]. What
	// passes by itself, such as full memory or a failover, is none.
	ErrRefused = errors.New("driver: the service refuses this client")
)

// Held is how a claim is refused because the name has another owner, or because others come first in
// the queue.
type Held struct {
	Label     string        // the owner's label; "" if it left none, or is not a client of this library
	Remaining time.Duration // until the owner's TTL ends; 0 if that is not known
	Exact     bool          // the name comes free after exactly Remaining; otherwise that is only a bound
	Limit     int           // how many holders there may be, if another holder asked for fewer; else 0
}

func (*Held) Error() string { return "driver: held by another owner" }

// Duplicate is how a claim with Dedup is refused because its scope has a marker.
type Duplicate struct {
	Label string // label of the claim that left the marker
}

func (*Duplicate) Error() string { return "driver: a dedup marker stands" }
