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
// can answer nobody just now, and [CannotAnswer] does not know that by itself. One error can have both
// marks: driver.NotSent(driver.Unavailable(err)). Unavailable(nil) is nil.
func Unavailable(err error) error { return mark(err, ErrCannotAnswer) }

// UnknownOutcome makes err match neither [ErrNotSent] nor [ErrNotOwner], and keeps the rest of it. Use
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
	return target != ErrNotSent && target != ErrNotOwner && errors.Is(e.err, target)
}
