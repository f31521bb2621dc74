package door

import (
	"context"
	"errors"

	"github.com/holdfast-go/holdfast/core"
)

// Kind is a row of the outcome table.
type Kind uint8

// The kinds. Zero is none of them.
const (
	Held        Kind = iota + 1
	HeldLocked       // the same, where the rule wants 423
	BadKey           // the request has no name, or no good one
	NoSource         // the route has not what the key is made of
	Unlockable       // the rule's options can not work where the route stands
	Unavailable      // the lock service, or the Locker was closed
	Ended            // the request's context, while nothing was known
	Lost             // while the handler ran
	Done             // a dedup marker stands
)

// Fault is why a door does not let a request through, or what happened while it did.
type Fault struct {
	Kind Kind
	Err  error
}

func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns what is behind it.
func (f *Fault) Unwrap() error { return f.Err }

// KindOf returns the kind of an error of core, 0 if it is none. A loss comes first: it is
// joined with what the work returned. The end of a context may be joined with ErrHeld, and
// then the name is held. ErrInvalid is taken for a name that came out of a request.
func KindOf(err error) Kind {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f.Kind
	}
	switch {
	case errors.Is(err, core.ErrLost):
		return Lost
	case errors.Is(err, core.ErrHeld):
		return Held
	case errors.Is(err, core.ErrDone):
		return Done
	case errors.Is(err, core.ErrInvalid):
		return BadKey
	case errors.Is(err, core.ErrUnavailable) && ended(err):
		return Ended
	case errors.Is(err, core.ErrUnavailable), errors.Is(err, core.ErrClosed):
		return Unavailable
	}
	return 0
}

// ended says whether err has the end of the caller's context in it. Core keeps the ends of
// its own bounds out of its errors.
func ended(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
