// Package driver defines what a lock backend implements for package core.
//
// A backend keeps three things for each name: who owns it (a token), until when (by the
// backend's own clock), and whether a dedup marker stands. core does everything else, once for
// all backends: renewal, the order of waiters inside a process, trust by local clocks, retries
// and clean-up.
//
// A backend may rely on core for this:
//
//   - It bounds each call with a context.
//   - It never uses a token for two tenures.
//   - It never renews a claim whose tenure has ended. It may release such a claim again and
//     again, to clean up behind a command that was late.
//
// core relies on a backend for this:
//
//   - It starts no goroutine for renewal, and returns its client's raw errors.
//   - It never dials or closes the client that it was given.
//   - Its constructor returns one value and does no I/O. [Validator] reports wrong arguments.
//
// Package drivertest checks the rest: a backend is correct if it passes.
//
// Application code should use package core.
package driver

import (
	"context"
	"time"
)

// Driver is a lock service. Any number of goroutines may call all methods at the same time.
//
// Acquire, Renew and Release may block on the network until ctx ends. A method should return
// once ctx has ended. If it does not, core stops waiting, and treats the outcome as unknown. If
// ctx has ended before the call, nothing may be sent: return [NotSent] of ctx's error.
//
// core retries, and the backend does not: a method that lost its connection returns the error.
// A method may repair something itself if the server has certainly executed nothing, such as
// to load a script again or to follow a redirect. That is not a retry.
//
// [CannotAnswer] tells from an error whether the service can answer anybody. It knows the errors
// of the net package; mark others with [Unavailable]. Do not mark an error if part of the service
// has answered: if one node of a quorum says "no permission", the error must not match. Mark what
// will not pass by itself with [Refused], and add with [Because] what an operator can do.
type Driver interface {
	// Acquire makes one attempt to own c.Name for c.TTL. It never waits for another owner.
	//
	// It is idempotent for each c.Token. After a lost reply, core asks again: Acquire then sets
	// the full TTL again, and returns a fence that is not smaller than the one that nobody saw.
	// A grant always means that the full TTL (or Grant.TTL) began after Acquire was called.
	//
	// Some claims can own a name together: see [Claim]. All claims share one queue. A claim that
	// could join the owners still waits behind earlier waiters, so readers do not starve a writer.
	//
	// A claim with a Handoff takes over a name that a Release has left for this hand-off, whoever
	// is in the queue. That uses the hand-off up. A hand-off that is used, over or unknown changes
	// nothing.
	//
	// A refusal is a *[Held] or, for a claim with Dedup, a *[Duplicate]. Return an error that
	// matches [ErrNotSent] if the server certainly has not executed the call and never will; make
	// it with [NotSent]. Any other error means that the outcome is unknown.
	Acquire(ctx context.Context, c Claim) (Grant, error)

	// Renew gives each claim its full TTL again if its token still owns the name. Compare and
	// extend are one step for each claim. A claim whose TTL is 0 is only verified.
	//
	// It returns one error for each claim, in order: nil, [ErrNotOwner], [ErrNotSent], or an
	// unknown outcome. A fault of one claim must not cost another claim its answer. core sends
	// up to 128 claims in a call, and calls Renew again for those without an answer.
	Renew(ctx context.Context, claims []Claim) []error

	// Release frees c.Name if c.Token still owns it, and tells the waiters as far as the backend
	// can. Compare and delete are one step. It returns nil, [ErrNotOwner], [ErrNotSent], or an
	// unknown outcome, after which core calls it again.
	//
	// If c.Mark is set, the same step leaves the dedup marker of c.Scope, for c.Dedup. If there is
	// no room for the marker, the error is [ErrUnmarked].
	//
	// If c.Keep is set, the token no longer owns the name, but the name stays taken for c.Keep from
	// now, whatever was left of its TTL. Nobody owns it then, so no token renews or releases it. A
	// *[Held] still has the label, and is Exact. With c.Handoff it is not Exact, because an Acquire
	// with the same hand-off may take the name over, and free it, at any time.
	Release(ctx context.Context, c Claim) error

	// Capabilities says what the backend can do. It does no I/O, does not block, and always
	// returns the same.
	Capabilities() Capabilities
}

// Queuer is implemented by backends that have a queue for each name, first come, first served.
//
// Places stand in the queue, not claims. core makes a new Place when its first waiter for a name
// goes there. It uses the Place for all claims until one of them is granted or nobody waits any
// more. While the queue has live places, a free name is for the first one: an Acquire from
// another place, or from none, is refused with a *[Held] without a label. A grant removes its
// place from the queue. So does a Release with a Place, whether or not the token owns the name;
// it also has the next place told.
//
// Every call with a Place keeps the place alive for [PlaceLife], Acquire too. After that time, in
// the backend's own clock, any call that meets the place drops it.
type Queuer interface {
	// Wait puts c.Place at the end of the queue, unless it is there already, and blocks until
	// that place should call Acquire, or until ctx ends. It looks at least once.
	//
	// nil means that it is the place's turn, or worth trying. It is a hint, never a grant. At the
	// end of ctx, the error is ctx's own, unwrapped, and only if the command that queued the place
	// was answered: after any other error except [ErrNotSent], that command may still be under
	// way. core retries: it calls Wait again and again, so that it misses a lost notification for
	// at most [Recheck]. After an error other than ctx's it polls.
	//
	// Notifications are hints, too. A waiter should listen before it is queued, if that takes
	// little time, so that it misses none. A waiter that cannot listen is queued all the same, and
	// looks more often.
	//
	// If c.Token owns the name already, Wait does not queue the place, and returns nil: the command
	// may have been late, and the grant has left the queue.
	Wait(ctx context.Context, c Claim) error
}

// Ranker is implemented by a [Queuer] in whose queues a place can stand where a backend on top of it wants
// it to, so that several of them have the same order. core does not use it.
//
// Places stand in the order of their ranks. A place without a rank gets one from the queue, behind all
// others. A Wait with a Rank puts c.Place there, or moves it there. An Acquire with a Rank comes before all
// places with larger ones, whether or not c.Place is in the queue.
type Ranker interface {
	Queuer

	// Rank returns a rank behind all places in the queue for a name. It is a multiple of [RankStep], at most 2^53,
	// and does not fall from one call to the next while the clock is not set back. It changes nothing.
	Rank(ctx context.Context, name string) (uint64, error)
}

// RankStep is how far apart the ranks are that a queue gives: one millisecond of its clock.
const RankStep = 4096

// Recheck is how long a waiter that hears nothing waits before it looks again.
func Recheck(ttl time.Duration) time.Duration { return min(ttl/3, time.Second) }

// PlaceLife is how long a place stays in the queue without a call that names it.
func PlaceLife(ttl time.Duration) time.Duration { return 3 * Recheck(ttl) }

// Offerer is implemented by a [Queuer] that can grant a free name to a place that waits, in the
// step that frees it. Then a hand-over takes one message instead of a message and a command.
type Offerer interface {
	Queuer

	// Offer is Wait for a claim that may be granted meanwhile: the command that queues c.Place
	// leaves an offer there. From then on, whoever frees the name, or finds it free, while this
	// place is the first makes c.Token the owner in the same step. That takes the place out of the
	// queue, and reserves c.Fences. A place with less than half of its life left is only told, as
	// in Wait.
	//
	// granted says that this has happened. The grant lasts as long as the place would have: that
	// is [PlaceLife] at least, counted from the call of Offer, and core renews it. Otherwise err
	// is as in Wait.
	//
	// Notifications can be late, lost, doubled or forged. So Offer believes one only if it names
	// this very call by something that nobody can guess. If it misses one, the next Acquire with
	// the same token gets the grant.
	//
	// A place has one offer at a time. c.Offer numbers them: a command with a smaller number that
	// is executed later neither replaces nor revives one with a larger number. What removes a
	// place removes its offer. A Release with c.Place and c.Offer keeps the place, withdraws its
	// offer if the number is not larger than c.Offer, and frees the name if the token owns it.
	//
	// core offers only exclusive claims without Dedup and Handoff. A backend may decline any of
	// them. Then Offer is Wait.
	Offer(ctx context.Context, c Claim) (g Grant, granted bool, err error)
}

// Validator is implemented by backends whose constructor can get wrong arguments.
type Validator interface {
	// Validate says what is wrong with them, or returns nil. core.New calls it once, and reports
	// the error as ErrInvalid. It does no I/O and does not block.
	Validate() error
}

// Locator is implemented by backends that know where their service is.
type Locator interface {
	// Location returns the service's address, for messages. It has no password. It does no I/O and
	// does not block.
	Location() string
}

// IdleCloser is implemented by backends that keep something alive between calls, such as a
// subscription.
type IdleCloser interface {
	// CloseIdle ends all of that. It does not close the client that the backend was given. It
	// begins to end everything, even if ctx has ended, and returns once that is done or ctx has
	// ended. What is left ends by itself, and another call waits for it.
	//
	// core's Close calls it after its last command.
	CloseIdle(ctx context.Context) error
}
