// Package driver defines what a lock backend implements for package core.
//
// A backend keeps three things per name: who owns it (a token), until when (by the
// backend's own clock), and whether a dedup marker stands. Everything else, renewal,
// waiting order inside a process, trust by local clocks, retries and clean-up, lives in
// core, once.
//
// What every backend may rely on: core bounds each call with a context, never uses a
// token for two tenures, and never renews a claim whose tenure has ended. It may release one
// again and again, to clean up behind a command that was late.
//
// What core relies on: a backend starts no goroutine for renewal, returns its client's
// raw errors, and never dials or closes the client it was given. Constructors return one
// value and do no I/O; what is wrong with their arguments comes out of [Validator].
// Package drivertest checks the rest: a backend is correct if it passes.
//
// Application code should use package core.
package driver

import (
	"context"
	"time"
)

// Driver is a lock service. All methods may be called concurrently.
//
// Every method should return once ctx has ended, and must not send anything for a call
// whose ctx has ended; core does not wait for one that does not return, and treats its
// outcome as unknown. Retries are core's: a method that lost its connection returns the
// error. What a backend repairs by itself, because the server has certainly not executed
// anything (a script to load again, a redirect to follow), is no retry.
type Driver interface {
	// Acquire makes one attempt to own c.Name for c.TTL, and never waits for another
	// owner.
	//
	// It is idempotent per c.Token: asked again after a lost reply, it sets the full TTL
	// again and returns a fence not smaller than the one nobody saw. "Granted" always
	// means that the full TTL (or Grant.TTL) began after Acquire was called.
	//
	// Claims that are Shared can own a name together, and so can as many claims with the same
	// Limit above 1. Each has its own TTL, and the name is free once the last of them is over
	// or has released it. Nothing else goes together: shared claims, limited ones, and those
	// that are exclusive. If limits differ, the smallest one among the claim and those that own
	// the name counts, and the answer says so. There is one line for all of them, so a claim
	// that could join others in the name still waits behind whoever came first: readers do not
	// starve a writer.
	//
	// A claim with a Handoff takes over a name that a Release has left for this hand-off, whoever
	// stands in line. That uses the hand-off up. One that is used, over or unknown changes nothing.
	//
	// A refusal is a *[Held] or, for a claim with Dedup, a *[Duplicate]. An error that matches
	// [ErrNotSent] says that the server certainly has not executed the call and never
	// will; [NotSent] makes one. Any other error means that the outcome is unknown.
	//
	// Beside that, an error says by [CannotAnswer] whether the service can answer anybody. Where
	// others than the net package know that, the backend says so with [Unavailable]. It must not
	// where part of the service has answered: of a quorum, one node that says "no permission"
	// is enough for the error not to match.
	Acquire(ctx context.Context, c Claim) (Grant, error)

	// Renew gives each claim its full TTL again, if its token still owns it, in one step
	// of compare and extend. It answers one error for each claim, in order: nil,
	// [ErrNotOwner], or an unknown outcome. One claim's trouble must not cost another
	// claim its answer. A claim whose TTL is 0 is only verified.
	Renew(ctx context.Context, claims []Claim) []error

	// Release frees c if its token still owns it, in one step of compare and delete: nil,
	// [ErrNotOwner], [ErrNotSent], or an unknown outcome. If c.Mark is set, it leaves the
	// dedup marker for c.Scope, for c.Dedup, in the same step, or answers [ErrUnmarked] if there
	// is no room for it. Those who wait for the name are told, as far as the backend can.
	//
	// If c.Keep is set, the token owns the name no longer, but the name stays taken for c.Keep
	// from now, whatever was left of its TTL: by nobody, so that no token renews or releases
	// it. A *[Held] then still has the label, and is Exact. With c.Handoff it is not, for an
	// Acquire with the same hand-off may take the name over, and free it, at any time.
	Release(ctx context.Context, c Claim) error

	// Capabilities says what the backend can do. It does no I/O and always answers the
	// same.
	Capabilities() Capabilities
}

// Queuer is implemented by backends that line waiters up, first come, first served.
//
// Those who stand in the line for a name are places, not claims: core makes a new Place
// when its first waiter for the name goes there, and uses it for all claims until the name
// is granted to one of them or nobody waits any more. While live places stand in line, a
// free name is for the first of them: an Acquire from any other place, or from none, is
// refused with a *[Held] without a label. A grant leaves the line. A Release with a Place
// leaves it too, whether or not the token owns the name, and has the next one told.
//
// Wait stands in line at c.Place, at the end if that is not there. It returns nil when it
// is that place's turn to call Acquire, or worth trying, and ctx's error when ctx ends
// first. It looks once at least, so that core, which calls it again and again, misses a
// lost notification for no longer than [Recheck]. A nil is a hint, never a grant. Any other
// error is transient for core, which goes on by polling. Only ctx's error as it is says that
// the command that lined the place up was answered; after any other it may still be under way.
// A claim whose token owns the name is not lined up, and Wait returns nil: the command may have
// been late, and the grant has left the line.
//
// A notification is a hint, too. A waiter listens before it is lined up where that takes no
// time worth mentioning, so that none comes too early; one that cannot listen, or not yet, is
// lined up all the same, and looks more often. Every call with a Place, Acquire too, keeps the place alive for [PlaceLife]; by then, in the
// backend's own time, it is dropped by whoever meets it.
type Queuer interface {
	Wait(ctx context.Context, c Claim) error
}

// Recheck is how long a waiter that hears nothing waits before it looks again.
func Recheck(ttl time.Duration) time.Duration { return min(ttl/3, time.Second) }

// PlaceLife is how long a place in line lasts of which nothing is heard.
func PlaceLife(ttl time.Duration) time.Duration { return 3 * Recheck(ttl) }

// Yielder is implemented by a [Queuer] that can release one claim and take the name for
// another one in one step, unless others stand in line for it: for a process whose turn is
// over while more of its goroutines wait.
//
// If old's token owns the name and nobody else stands in line, it goes to next, with new
// fences. If others do, it is released, next.Place is lined up at the end, the first in line
// is told, and errNext is a *[Held]. If old's token does not own it, errOld is [ErrNotOwner]
// and nothing else happens: errNext then matches [ErrNotSent]. An unknown outcome is
// unknown for both.
type Yielder interface {
	Queuer
	Yield(ctx context.Context, old, next Claim) (g Grant, errNext, errOld error)
}

// Validator is implemented by backends whose constructor can be given something wrong.
// core.New asks it, once, and reports the error as ErrInvalid. It does no I/O.
type Validator interface {
	Validate() error
}

// IdleCloser is implemented by backends that keep something of their own alive between
// calls, such as a subscription. core's Close calls it after the last command. It begins to end
// all of that, whatever ctx says, and returns once that is done or ctx has ended; what is left
// ends by itself, and another call waits for it. It does not close the client that the backend
// was given.
type IdleCloser interface {
	CloseIdle(ctx context.Context) error
}
