package adapter

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// Reason says what became of a request. It is a row of an adapter's table.
type Reason uint8

// The reasons. Only with Done and Lost the work has run.
const (
	Done          Reason = iota + 1 // the work ran; its own error is in Own
	Held                            // somebody else holds a name
	Duplicate                       // the work was done before, see core.WithDedup
	BadKey                          // the request has no usable value for the key
	Misconfigured                   // the program is at fault: the rule cannot work here
	Unavailable                     // the lock service did not answer
	Stopping                        // this process drains, or its Locker is closed: another one may take the request
	Ended                           // the context ended before anything was known
	Lost                            // a lock was lost while the work ran
)

// String returns the reason in words.
func (r Reason) String() string {
	return [...]string{"", "done", "held", "duplicate", "bad key", "misconfigured", "unavailable", "stopping", "ended", "lost"}[r]
}

// ErrMisconfigured is what an error of a [Source] matches if no request of this kind can have the value, because
// the route lacks it, say.
var ErrMisconfigured = errors.New("misconfigured")

// Outcome is what became of a request.
type Outcome struct {
	Reason Reason
	// Own is what the work returned, untouched.
	Own error
	// Err is why the work did not run, or, with Lost, the [*core.LostError]. It is not for clients.
	Err error
}

// Ran says whether the work has run.
func (o Outcome) Ran() bool { return o.Reason == Done || o.Reason == Lost }

// RetryAfter is when it makes sense to send the request again: 0 if the work has run, or if no time is better
// than another.
func (o Outcome) RetryAfter() time.Duration {
	switch o.Reason {
	case Held:
		if held, ok := errors.AsType[*core.HeldError](o.Err); ok {
			return held.RetryAfter
		}
		return time.Second
	case Unavailable, Stopping:
		return time.Second
	default:
		return 0
	}
}

// Join is the outcome as an error, for frameworks whose handlers return one: nil or the work's own, joined with
// a loss, or why the work did not run.
func (o Outcome) Join() error {
	switch {
	case o.Err == nil:
		return o.Own // that very error
	case o.Own == nil:
		return o.Err
	default:
		return errors.Join(o.Own, o.Err)
	}
}

// unnamed is the outcome of a request without a name.
func unnamed(err error) Outcome {
	if errors.Is(err, ErrMisconfigured) {
		return Outcome{Reason: Misconfigured, Err: err}
	}
	return Outcome{Reason: BadKey, Err: err}
}

// refused is the outcome of a request whose work core did not start.
func refused(err error) Outcome {
	out := Outcome{Reason: ReasonOf(err), Err: err}
	switch out.Reason {
	case BadKey: // the names are good: the options cannot work where the work stands
		out.Reason = Misconfigured
	case Lost: // a lock around this one was lost, and the context ended
		out.Reason = Ended
	case 0: // a backend's own, not of core
		out.Reason = Unavailable
	default:
	}
	return out
}

// ReasonOf is what an error of core means that came up inside the work, as of a lock that it takes itself. It is 0 for other
// errors.
func ReasonOf(err error) Reason {
	if errors.Is(err, core.ErrDraining) {
		return Stopping
	}
	return [...]Reason{
		core.KindHeld: Held, core.KindDuplicate: Duplicate, core.KindInvalid: BadKey, core.KindUnavailable: Unavailable, core.KindClosed: Stopping,
		core.KindEnded: Ended, core.KindLost: Lost, core.KindReleased: Misconfigured,
	}[core.KindOf(err)]
}
