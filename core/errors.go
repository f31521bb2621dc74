package core

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/invalid"
)

// The errors to test for with errors.Is. Each has a method ErrorType() string, for the error.type
// attribute of metrics and spans.
//
// Held, unavailable, lost and duplicate are never mixed up: an error matches one of them only if
// that is what is known.
var (
	// ErrHeld: someone else has the name, or had it when the wait budget ended. The error is a
	// *[HeldError].
	ErrHeld error = &sentinel{"held", "held by another owner"}

	// ErrUnavailable: the backend could not answer, or it is not known whether it acted. The error
	// wraps the backend's own. A process that has reached [WithMaxLeases] or [WithMaxWaiters] gets
	// it too.
	ErrUnavailable error = &sentinel{"unavailable", "lock service unavailable"}

	// ErrLost: this lease was held and then lost. The error is a *[LostError].
	ErrLost error = &sentinel{"lost", "lease lost"}

	// ErrDuplicate: a dedup marker says that the work is already done. The error is a
	// *[DuplicateError].
	ErrDuplicate error = &sentinel{"duplicate", "already done"}

	// ErrReleased: the lease has ended by its own Release, Complete, Finish or Detach. That is no
	// loss, and it does not match ErrLost.
	ErrReleased error = &sentinel{"released", "lease released"}

	// ErrClosed: the Locker was closed.
	ErrClosed error = &sentinel{"closed", "locker closed"}

	// ErrInvalid: a name, an option or a combination of options that cannot work, or something that
	// the backend cannot do. An acquire that returns it has sent nothing.
	ErrInvalid = invalid.Err
)

type sentinel struct{ kind, text string }

func (e *sentinel) Error() string { return "holdfast: " + e.text }

func (e *sentinel) ErrorType() string { return e.kind }

// HeldError says that someone else holds a name. It matches [ErrHeld].
type HeldError struct {
	Name string
	// Label is the holder's [WithLabel]. It is "" if the holder gave none, or is not a Holdfast
	// client.
	Label string
	// RetryAfter says when to try again: after what is left of the holder's lease, at most a
	// second, with jitter. It is a hint, because holders renew their leases and release them early.
	RetryAfter time.Duration
	// Exact says that RetryAfter is not a hint: the name comes free then and not before, because a
	// release has left it taken, by [WithMinHold].
	Exact bool
	// Here says that this process has the name, through another call, for HeldFor. If the call that got
	// this error is a part of that one's work, it has waited for itself: pass on the context of the
	// lease, so that it re-enters, or take all names at once with [Locker.AcquireAll]. It is not set for
	// names that are shared.
	Here    bool
	HeldFor time.Duration
}

func (e *HeldError) Error() string {
	text := fmt.Sprintf("holdfast: %q is held by %q", e.Name, e.Label)
	if e.Label == "" {
		text = fmt.Sprintf("holdfast: %q is held by another owner", e.Name)
	}
	if e.Here {
		text += fmt.Sprintf(", in this process for %s; inside its work, %s", e.HeldFor.Truncate(time.Millisecond), passOn)
	}
	return text
}

// passOn is what to do if a call waits for itself.
const passOn = "pass on the context of the lease, or use AcquireAll"

// Is makes errors.Is(err, ErrHeld) true.
func (e *HeldError) Is(target error) bool { return target == ErrHeld }

// ErrorType returns "held".
func (e *HeldError) ErrorType() string { return "held" }

// Reason says why a lease was lost.
type Reason string

// The reasons of a [LostError].
const (
	// ReasonExpired: its time ended without a renewal, for example after a pause of the process.
	ReasonExpired Reason = "expired"
	// ReasonTaken: the backend said that the name has no holder, or another one.
	ReasonTaken Reason = "taken"
	// ReasonUnreachable: its time ended while renewals failed.
	ReasonUnreachable Reason = "unreachable"
	// ReasonMaxHold: it was held for as long as [WithMaxHold] allows.
	ReasonMaxHold Reason = "max-hold"
)

// LostError says that a lease may no longer be trusted. It matches [ErrLost]. It is also the cause
// of the context of the work that ran under the lease.
type LostError struct {
	Name   string
	Reason Reason
}

func (e *LostError) Error() string {
	return fmt.Sprintf("holdfast: lease of %q lost: %s", e.Name, e.Reason)
}

// Is makes errors.Is(err, ErrLost) true.
func (e *LostError) Is(target error) bool { return target == ErrLost }

// ErrorType returns "lost".
func (e *LostError) ErrorType() string { return "lost" }

// DuplicateError says that there is a dedup marker for a name and scope. It matches [ErrDuplicate].
type DuplicateError struct {
	Name  string
	Label string // of the lease that left the marker
}

func (e *DuplicateError) Error() string { return fmt.Sprintf("holdfast: %q is already done", e.Name) }

// Is makes errors.Is(err, ErrDuplicate) true.
func (e *DuplicateError) Is(target error) bool { return target == ErrDuplicate }

// ErrorType returns "duplicate".
func (e *DuplicateError) ErrorType() string { return "duplicate" }

// unavailableError is ErrUnavailable with the backend's reason.
type unavailableError struct {
	op, name string
	err      error
}

func (e *unavailableError) Error() string {
	text := fmt.Sprintf("holdfast: %s: lock service unavailable: %v", e.subject(), e.err)
	if why := driver.Reason(e.err); !strings.Contains(text, why) {
		text += ": " + why
	}
	return text
}

// subject says what was not possible, and with which name, if it is about one.
func (e *unavailableError) subject() string {
	if e.name == "" {
		return e.op
	}
	return fmt.Sprintf("%s %q", e.op, e.name)
}

func (e *unavailableError) Is(target error) bool { return target == ErrUnavailable }

func (e *unavailableError) Unwrap() error { return e.err }

func (e *unavailableError) ErrorType() string { return "unavailable" }

// endedError is the end of the caller's context, joined with what was known last.
type endedError struct {
	ctx   error // context.Canceled or context.DeadlineExceeded
	known error // matches ErrHeld or ErrUnavailable
}

func (e *endedError) Error() string { return fmt.Sprintf("%v (%v)", e.known, e.ctx) }

func (e *endedError) Unwrap() []error { return []error{e.ctx, e.known} }

func (e *endedError) ErrorType() string {
	if errors.Is(e.ctx, context.DeadlineExceeded) {
		return "timeout"
	}
	return "canceled"
}

func invalidf(format string, args ...any) error { return invalid.Errorf(format, args...) }

var (
	errNoAnswer = errors.New("no answer within the attempt's bound: check whether the address is right, and whether the server is up and can be reached")
	errFull     = errors.New("not asked")
	errNotAsked = errors.New("the context ended before the lock service answered")
	errLate     = errors.New("the answer came too late to be trusted")
	errDegraded = errors.New("the lease is degraded: the lock service knows nothing of it")
)

// opaque hides context errors that come from our own time limits. To the caller, errors.Is(err,
// context.DeadlineExceeded) is only ever about the caller's context. What the backend knows of the reason stays.
func opaque(err error) error {
	switch why := driver.Reason(err); {
	case !silent(err):
		return err
	case why != "":
		return driver.Because(fmt.Errorf("no answer within the attempt's bound: %s", why), why)
	default:
		return errNoAnswer
	}
}

// silent says of the outcome of a command that it had no answer in its time.
func silent(err error) bool {
	return errors.Is(err, call.ErrNoAnswer) || errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled)
}

// Kind is what an error means to code that has to answer it, such as middleware.
type Kind uint8

// The kinds of errors.
const (
	KindOther       Kind = iota // nil, or an error of the work itself
	KindHeld                    // someone else has the name; the work did not run
	KindDuplicate               // the work is already done; it did not run again
	KindInvalid                 // a name or an option cannot work, or the backend cannot do it; the work did not run
	KindUnavailable             // the lock service did not answer; the work did not run
	KindClosed                  // the Locker was closed; the work did not run
	KindEnded                   // the caller's context ended before anything was known; the work did not run
	KindReleased                // the lease has ended by its own release
	KindLost                    // the lease was lost, mostly while the work ran
)

var kinds = []string{"other", "held", "duplicate", "invalid", "unavailable", "closed", "ended", "released", "lost"}

// String is the kind in a word, such as "held", for a log.
func (k Kind) String() string { return inWords(kinds, int(k), "Kind") }

// inWords is the word of a number, or its type and the number if there is none.
func inWords(words []string, i int, kind string) string {
	if i < len(words) {
		return words[i]
	}
	return kind + "(" + strconv.Itoa(i) + ")"
}

// KindOf says what an error of this package means. It looks through wrapped and joined errors. Two
// rules decide where an error matches more than one kind. A loss comes first, because it is joined
// with what the work has returned. If the end of a context is joined with ErrHeld, the kind is
// KindHeld.
//
// An error of the work itself can match one of the sentinels too, for example if it comes from a
// lock inside. Then KindOf gives the kind of that sentinel.
func KindOf(err error) Kind {
	switch {
	case errors.Is(err, ErrLost):
		return KindLost
	case errors.Is(err, ErrHeld):
		return KindHeld
	case errors.Is(err, ErrDuplicate):
		return KindDuplicate
	case errors.Is(err, ErrInvalid):
		return KindInvalid
	case errors.Is(err, ErrReleased):
		return KindReleased
	case errors.Is(err, ErrClosed):
		return KindClosed
	case !errors.Is(err, ErrUnavailable):
		return KindOther
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded): // the caller's: see opaque
		return KindEnded
	default:
		return KindUnavailable
	}
}
