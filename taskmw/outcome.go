package taskmw

import (
	"errors"
	"fmt"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
)

// ErrConflict says that a task did not run because someone else holds its name. The error is a
// *[ConflictError].
var ErrConflict = errors.New("taskmw: the task's lock is held")

// ConflictError is what the middleware returns for a task that did not run because someone else holds
// its name. It matches [ErrConflict] and wraps core's error, which matches [core.ErrHeld]. If a
// handler returns an error because some other lock is held, that is not a ConflictError.
type ConflictError struct {
	Err error
	// Last says that the attempt was the task's last one. The middleware has waited, and asynq
	// archives the task.
	Last bool
}

func (e *ConflictError) Error() string {
	if e.Last {
		return fmt.Sprintf("taskmw: the lock did not come free in time on the task's last attempt: %v", e.Err)
	}
	return fmt.Sprintf("taskmw: %v", e.Err)
}

// Is makes errors.Is(err, ErrConflict) true.
func (e *ConflictError) Is(target error) bool { return target == ErrConflict }

// Unwrap returns core's error.
func (e *ConflictError) Unwrap() error { return e.Err }

// ErrorType returns "held", as core's error does.
func (e *ConflictError) ErrorType() string { return "held" }

// refused is the outcome of a task whose handler did not run, though nobody holds its name.
func refused(err error) error {
	if errors.Is(err, core.ErrDraining) {
		return &postponedError{err}
	}
	return keyless(err) // or the context's error, unavailable, closed
}

// postponedError is the outcome of a task that came while the Locker drains. It is no failure: the
// task runs on another server, or later.
type postponedError struct{ err error }

func (e *postponedError) Error() string { return fmt.Sprintf("taskmw: %v", e.err) }

func (e *postponedError) Unwrap() error { return e.err }

// ErrorType returns "draining".
func (e *postponedError) ErrorType() string { return "draining" }

// excused says of an error of the middleware that it is no failure of the task.
func excused(err error) bool {
	_, postponed := errors.AsType[*postponedError](err)
	return postponed || errors.Is(err, ErrConflict)
}

// keyless is the outcome of a task without a usable name. Another attempt would find the
// same, unless a key function says otherwise.
func keyless(err error) error {
	if !errors.Is(err, core.ErrInvalid) {
		return err
	}
	return fmt.Errorf("taskmw: %w: %w", err, asynq.SkipRetry)
}

// settled is the outcome of a task whose handler ran. core has joined the loss of the lease
// to the handler's error.
func settled(err error, lost bool) error {
	if !isFinal(err) || !lost {
		return err
	}
	return &unsettledError{err}
}

// isFinal says that asynq does not retry a task after err.
func isFinal(err error) bool {
	return errors.Is(err, asynq.SkipRetry) || errors.Is(err, asynq.RevokeTask)
}

// unsettledError is a final verdict of a handler that had lost its lease: no more to be
// trusted than its success would be. It is the same error but for the finality, so that the
// task is retried.
type unsettledError struct{ err error }

func (e *unsettledError) Error() string { return e.err.Error() }

func (e *unsettledError) Is(target error) bool {
	return target != asynq.SkipRetry && target != asynq.RevokeTask && errors.Is(e.err, target)
}

func (e *unsettledError) As(target any) bool { return errors.As(e.err, target) }

// ErrorType returns "lost".
func (e *unsettledError) ErrorType() string { return "lost" }
