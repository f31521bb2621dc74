package driver

import "errors"

// NotSent marks err with [ErrNotSent] and keeps its text. Use it for a client's error after which the
// server has certainly not executed the call, and for a context that had ended before anything was
// sent:
//
//	if err := driver.NotSent(ctx.Err()); err != nil {
//		return err
//	}
//
// NotSent(nil) is nil.
func NotSent(err error) error { return mark(err, ErrNotSent) }

// Unavailable marks err with [ErrCannotAnswer] and keeps its text. Use it for an error that says that
// the service can answer nobody just now, where [CannotAnswer] does not know that by itself. Both marks
// can be on one error: driver.NotSent(driver.Unavailable(err)). Unavailable(nil) is nil.
func Unavailable(err error) error { return mark(err, ErrCannotAnswer) }

// UnknownOutcome hides that err, or an error inside it, is [ErrNotSent] or [ErrNotOwner], and keeps the
// rest of it. Use it where one request failed for certain, but the call made others that may have been
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

// unknownOutcome has no Unwrap: what it hides would show.
type unknownOutcome struct{ err error }

func (e *unknownOutcome) Error() string { return e.err.Error() }

func (e *unknownOutcome) As(target any) bool { return errors.As(e.err, target) }

func (e *unknownOutcome) Is(target error) bool {
	return target != ErrNotSent && target != ErrNotOwner && errors.Is(e.err, target)
}
