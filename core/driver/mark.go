package driver

import "errors"

// NotSent marks err with [ErrNotSent] and keeps its text. Use it for a client's error if the server has
// certainly not executed the call, and for a context that had ended before anything was sent:
//
//	if err := driver.NotSent(ctx.Err()); err != nil {
//		return err
//	}
//
// NotSent(nil) is nil.
func NotSent(err error) error { return mark(err, ErrNotSent) }

// Unavailable marks err with [ErrCannotAnswer] and keeps its text. Use it if err means that the service
// can answer nobody just now, and [Explain] does not know that by itself. One error can have both
// marks: driver.NotSent(driver.Unavailable(err)). Unavailable(nil) is nil.
func Unavailable(err error) error { return mark(err, ErrCannotAnswer) }

// Refused marks err with [ErrRefused] and keeps its text. Refused(nil) is nil.
func Refused(err error) error { return mark(err, ErrRefused) }

// Because adds to err what an operator should read: what is wrong, and what to do about it. It keeps
// the text of err, and [Reason] finds why. core writes why into the log, so why must contain nothing
// that came from a request or from the server, such as a name. Because(nil, why) is nil.
func Because(err error, why string) error {
	if err == nil {
		return nil
	}
	return &because{err, why}
}

// Reason returns what [Because] has added to err, or "".
func Reason(err error) string {
	if b, ok := errors.AsType[*because](err); ok {
		return b.why
	}
	return ""
}

type because struct {
	error
	why string
}

func (e *because) Unwrap() error { return e.error }

// UnknownOutcome makes err match none of [ErrNotSent], [ErrNotOwner] and [ErrRefused], and keeps the rest of it. Use
// it if one request of a call has certainly failed, but the call made other requests that may have been
// executed. UnknownOutcome(nil) is nil.
func UnknownOutcome(err error) error {
	if err == nil {
		return nil
	}
	return &unknownOutcome{err}
}

// marked is an error with a sentinel that its text does not show.
type marked struct {
	error
	as error
}

func mark(err, as error) error {
	if err == nil {
		return nil
	}
	return &marked{err, as}
}

func (e *marked) Unwrap() []error { return []error{e.as, e.error} }

// unknownOutcome has no Unwrap: that would show the errors that it hides.
type unknownOutcome struct{ err error }

func (e *unknownOutcome) Error() string { return e.err.Error() }

func (e *unknownOutcome) As(target any) bool { return errors.As(e.err, target) }

func (e *unknownOutcome) Is(target error) bool {
	return target != ErrNotSent && target != ErrNotOwner && target != ErrRefused && errors.Is(e.err, target)
}
