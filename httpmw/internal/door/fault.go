package door

import (
	"errors"

	"github.com/holdfast-go/holdfast/core"
)

// Kind is a row of the outcome table.
type Kind uint8

// The kinds. Zero is none of them.
const (
	Held         Kind = iota + 1
	BadKey            // the request has no name, or no good one
	TooLarge          // its body is larger than what is looked at for a name
	NoSource          // the route has not what the key is made of
	Unlockable        // the rule's options can not work where the route stands
	Unavailable       // the lock service, or the Locker was closed
	Ended             // the request's context, while nothing was known
	Lost              // while the handler ran
	BadRepeatKey      // no Idempotency-Key, or no good one
	OtherRequest      // the Idempotency-Key was used for something else
	Duplicate         // a dedup marker stands
)

// Fault is why a door does not let a request through, or what happened while it did.
type Fault struct {
	Kind Kind
	Err  error
}

func (f *Fault) Error() string { return f.Err.Error() }

// Unwrap returns what is behind it.
func (f *Fault) Unwrap() error { return f.Err }

// KindOf returns the kind of an error of core, 0 if it is none. ErrInvalid is taken for a name that came out of a request.
func KindOf(err error) Kind {
	if f, ok := errors.AsType[*Fault](err); ok {
		return f.Kind
	}
	switch core.KindOf(err) {
	case core.KindLost:
		return Lost
	case core.KindHeld:
		return Held
	case core.KindDuplicate:
		return Duplicate
	case core.KindInvalid:
		return BadKey
	case core.KindEnded:
		return Ended
	case core.KindUnavailable, core.KindClosed:
		return Unavailable
	default:
		return 0
	}
}
