// Package driver defines what a lock backend implements for package core.
//
// A backend keeps three things for each name: who owns it (a token), until when (by the backend's own
// clock), and who waits for it. core does everything else, once for all backends: renewal, the order of
// waiters inside a process, trust by local clocks, retries and clean-up.
//
// A backend may rely on core for this:
//
//   - It bounds each call with a context.
//   - A token is for one name and one process. Once core has released it, it asks for nothing with it
//     any more. It may release it again and again, to clean up behind a command that was late.
//   - It asks or renews with another TTL, or asks with another Keep, than before only while no command of
//     the token is open: each of them was answered.
//   - It calls Acquire or Wait for a token once at a time, unless it has given up an earlier call.
//
// core relies on a backend for this:
//
//   - It starts no goroutine for renewal, and returns its client's raw errors.
//   - It never dials or closes the client that it was given.
//   - Its constructor returns one value and does no I/O. Capabilities tells of wrong arguments.
//
// Package drivertest checks the rest: a backend is correct if it passes. examples/backend is one with locks in files, in 200 lines.
//
// Application code should use package core.
package driver

import (
	"context"
	"time"
)

// Driver is a lock service. Any number of goroutines may call all methods at the same time.
//
// Acquire, Wait, Renew and Release may block on the network until ctx ends. A method should return
// once ctx has ended. If it does not, core stops waiting, and treats the outcome as unknown. If ctx has
// ended before the call, nothing may be sent: return [NotSent] of ctx's error.
//
// core retries, and the backend does not: a method that lost its connection returns the error. A method
// may repair something itself if the server has certainly executed nothing, such as to load a script
// again or to follow a redirect. That is not a retry. Wait may also look again as often as it likes.
//
// [Explain] says what an error means. It knows the errors of the net package; mark others with
// [Unavailable]. Do not mark an error if part of the service has answered: if one node of a quorum says
// "no permission", the error must not match. Mark what will not pass by itself with [Refused], and add
// with [Because] what an operator can do.
type Driver interface {
	// Acquire makes one attempt to own c.Name for c.TTL. It never waits for another owner, and leaves
	// nothing in the queue.
	//
	// It is idempotent for each c.Token. After a lost reply, core asks again: Acquire then sets the
	// full TTL again, and returns a fence that is not smaller than the one that nobody saw. The same
	// holds for an owner that asks for something else: the grant is then for the new claim.
	//
	// Some claims can own a name together: see [Claim]. All claims share one queue. A claim that could
	// join the owners still waits behind earlier waiters, so readers do not starve a writer. While the
	// queue has live entries, a free name is for the first one: an Acquire with another token is refused
	// with a *[Held] without a label.
	//
	// A claim with a Handoff takes over a name that a Release has left for this hand-off, whoever is in
	// the queue. That uses the hand-off up. A hand-off that is used, over or unknown changes nothing.
	//
	// A refusal is a *[Held] or, for a claim with Dedup, a *[Duplicate]. Return an error that matches
	// [ErrNotSent] if the server certainly has not executed the call and never will; make it with
	// [NotSent]. Any other error means that the outcome is unknown.
	Acquire(ctx context.Context, c Claim) (Grant, error)

	// Wait stands in the queue for c.Name, as c.Token, until it is granted the name or ctx ends. If the
	// token owns the name already, that is a grant as by Acquire.
	//
	// It puts the token at the end of the queue, unless it is there. The entry stays there when Wait
	// returns without a grant, and lives on for [PlaceLife] after the last look: core calls Wait again, with
	// the same token, or else Release, which takes it out of the queue. Each look of Wait keeps it alive, and says
	// what the entry wants from then on: the look that was sent last counts, also if it arrives before an earlier
	// one. A dead entry is dropped by whoever meets it.
	//
	// Whoever frees the name, or finds it free, serves the first live entry. There are two ways:
	//
	//   - A direct grant makes the token of that entry the owner in the same step, for [PlaceLife] from the
	//     look that left the entry as it is. Only a [Claim.Plain] one may be granted so: all that others
	//     ask for must be looked at in the step that grants. It never ends before that, so a backend that
	//     counts in milliseconds rounds up.
	//   - Otherwise the entry is told, and Wait asks, as Acquire does. An entry that has less than half of its
	//     life left may be told, too: its grant would be as short.
	//
	// Messages can be late, lost, doubled or forged. So a direct grant is believed only if the message
	// names the very look that left the entry, by a nonce and by a number that grows with each look, also
	// from one call of Wait to the next. The command that grants, and one that looks, may overtake each
	// other: a look beside its own grant never queues the owner again. After a missed message the next look
	// finds the grant. A waiter should listen before it looks, if that takes little time; and it looks again
	// every [Recheck] at the latest.
	//
	// Wait reports each answer that is no grant to c.Heard at once. It returns:
	//
	//   - a grant, with Grant.Asked if it knows better than "when Wait was called";
	//   - the last *[Held] once ctx has ended, if the service has answered after the last time that it
	//     was asked;
	//   - a *[Duplicate], at once, which takes the token out of the queue;
	//   - an error that matches [ErrRefused], at once;
	//   - ErrNotSent, if this call has put nothing into the queue, now or later;
	//   - any other error if a look had no answer. It may be executed later, and core calls Wait again.
	//
	// A backend without a queue calls [Poll]. One that is only told to look calls [Await].
	Wait(ctx context.Context, c Claim) (Grant, error)

	// Renew gives each claim its full TTL again if its token still owns the name. Compare and extend
	// are one step for each claim. It may store the claim's label, which a hand-over inside the process can have
	// changed. A claim whose TTL is 0 is only verified.
	//
	// It returns one error for each claim, in order: nil, [ErrNotOwner], [ErrNotSent], or an unknown
	// outcome. A fault of one claim must not cost another claim its answer. core sends up to
	// [MaxRenewals] claims in a call, and calls Renew again for those without an answer.
	Renew(ctx context.Context, claims []Claim) []error

	// Release frees c.Name if c.Token owns it, takes c.Token out of the queue, and serves the first
	// entry of the queue. All of that is one step. It returns nil, [ErrNotOwner] if the token did not own
	// the name, [ErrNotSent], or an unknown outcome, after which core calls it again.
	//
	// A token that does not own the name leaves nothing, and still leaves the queue.
	//
	// If c.Dedup is set, the same step leaves the dedup marker of c.Scope, for c.Dedup. If there is no
	// room for the marker, the error is [ErrUnmarked].
	//
	// If c.Keep is set, the token no longer owns the name, but the name stays taken for c.Keep from now,
	// whatever was left of its TTL. Nobody owns it then, so no token renews or releases it. A *[Held]
	// still has the label, and is Exact. With c.Handoff it is not Exact, because an Acquire with the
	// same hand-off may take the name over, and free it, at any time.
	Release(ctx context.Context, c Claim) error

	// Capabilities says what the backend can do, where it is, and what is wrong with the arguments of its
	// constructor. It does no I/O, does not block, and always returns the same, except for the Location.
	Capabilities() Capabilities
}

// Closer is implemented by backends that keep something alive between calls, such as a subscription.
type Closer interface {
	// Close ends all of that. It does not close the client that the backend was given. It begins to end
	// everything, even if ctx has ended, and returns once that is done or ctx has ended. What is left
	// ends by itself, and another call waits for it.
	//
	// core's Close calls it after its last command.
	Close(ctx context.Context) error
}

// MaxRenewals is how many claims one call of Renew has at most.
const MaxRenewals = 128

// MaxFences is the largest Claim.Fences that core asks for. FencesBesideOthers is the most that a
// backend reserves while others are in the queue.
const (
	MaxFences          = 4096
	FencesBesideOthers = 128
)

// Recheck is how long a waiter that hears nothing waits before it looks again.
func Recheck(ttl time.Duration) time.Duration { return min(ttl/3, time.Second) }

// PlaceLife is how long an entry stays in the queue after the look that left it there, and so how long
// a direct grant lasts from that look on.
func PlaceLife(ttl time.Duration) time.Duration { return 3 * Recheck(ttl) }

// Patience is how long one attempt, or one release, may take for a claim with this TTL.
func Patience(ttl time.Duration) time.Duration { return min(ttl/3, 2*time.Second) }
