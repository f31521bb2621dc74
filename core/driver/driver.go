// Package driver defines what a lock backend implements for package core.
//
// A backend keeps three things per name: who owns it (a token), until when (by the
// backend's own clock), and whether a dedup marker stands. Everything else, renewal,
// waiting order inside a process, trust by local clocks, retries and clean-up, lives in
// core, once.
//
// What every backend may rely on: core bounds each call with a context, never uses a
// token for two tenures, and never renews or releases a claim whose tenure has ended.
//
// What core relies on: a backend starts no goroutine for renewal, returns its client's
// raw errors, and never dials or closes the client it was given. Constructors return one
// value and do no I/O; what is wrong with their arguments comes out of [Validator].
// Package drivertest checks the rest: a backend is correct if it passes.
//
// Application code should use package core.
package driver

import "context"

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
	// A refusal is a *[Held] or, for a claim with Dedup, a *[Done]. An error that matches
	// [ErrNotSent] says that the server certainly has not executed the call and never
	// will. Any other error means that the outcome is unknown.
	Acquire(ctx context.Context, c Claim) (Grant, error)

	// Renew gives each claim its full TTL again, if its token still owns it, in one step
	// of compare and extend. It answers one error for each claim, in order: nil,
	// [ErrNotOwner], or an unknown outcome. One claim's trouble must not cost another
	// claim its answer. A claim whose TTL is 0 is only verified.
	Renew(ctx context.Context, claims []Claim) []error

	// Release frees c if its token still owns it, in one step of compare and delete: nil,
	// [ErrNotOwner], [ErrNotSent], or an unknown outcome. If c.Done is set, it leaves the
	// dedup marker for c.Scope, for c.Dedup, in the same step. Those who wait for the name
	// are told, as far as the backend can.
	Release(ctx context.Context, c Claim) error

	// Capabilities says what the backend can do. It does no I/O and always answers the
	// same.
	Capabilities() Capabilities
}

// Queuer is implemented by backends that can tell a waiter when to try.
//
// Wait returns nil when it is worth calling Acquire for c, and ctx's error when ctx ends
// first, which core makes happen soon enough that a lost notification costs little. A nil
// is a hint, never a grant. Any other error is transient for core, which goes on by
// polling.
//
// The waiter is registered with the server before Wait asks whether the name is free, so
// that a release between a refused Acquire and Wait is not missed.
type Queuer interface {
	Wait(ctx context.Context, c Claim) error
}

// Validator is implemented by backends whose constructor can be given something wrong.
// core.New asks it, once, and reports the error as ErrInvalid. It does no I/O.
type Validator interface {
	Validate() error
}

// IdleCloser is implemented by backends that keep something of their own alive between
// calls, such as a subscription. core's Close calls it after the last command. It does not
// close the client that the backend was given.
type IdleCloser interface {
	CloseIdle() error
}
