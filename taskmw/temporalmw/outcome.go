package temporalmw

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/key"
)

// The types of the interceptor's application errors, for RetryPolicy.NonRetryableErrorTypes and for workflows
// that look at an error.
const (
	TypeHeld        = "LockHeld"
	TypeUnavailable = "LockUnavailable"
	TypeLost        = "LockLost"
	TypeKey         = "LockKeyInvalid"
	TypeDuplicate   = "LockDuplicate"
)

// delay is when an activity that found its name held tries again, less or more a fifth.
const delay = 5 * time.Second

// refused is the outcome of an activity that did not run, or lost its lock. What a workflow's history keeps of it names
// no holder.
func refused(ctx context.Context, out adapter.Outcome) error {
	switch out.Reason {
	case adapter.Held:
		return failure(ctx, "the lock is held", TypeHeld, out.Err, temporal.ApplicationErrorOptions{NextRetryDelay: adapter.Spread(delay)})
	case adapter.Duplicate:
		return failure(ctx, "it was done before", TypeDuplicate, out.Err, temporal.ApplicationErrorOptions{NonRetryable: true})
	case adapter.BadKey, adapter.Misconfigured:
		return keyless(ctx, out.Err)
	case adapter.Ended:
		if errors.Is(out.Err, context.Canceled) {
			return context.Canceled
		}
		return context.DeadlineExceeded
	case adapter.Lost: // it decides nothing: neither its result counts, nor that its error is final
		cause := out.Join()
		if temporal.IsCanceledError(cause) || errors.Is(cause, context.Canceled) { // the SDK would report that instead
			cause = fmt.Errorf("%w: %s", out.Err, out.Own) //nolint:errorlint // without the cancellation
		}
		return failure(ctx, "the lock was lost while the activity ran", TypeLost, cause, temporal.ApplicationErrorOptions{})
	case adapter.Stopping: // the next attempt may be another worker's
		return failure(ctx, "the worker is about to stop", TypeUnavailable, out.Err, temporal.ApplicationErrorOptions{})
	default:
		return failure(ctx, "the lock service did not answer", TypeUnavailable, out.Err, temporal.ApplicationErrorOptions{})
	}
}

// keyless is the outcome of an activity without a usable name. Another attempt would find the same, unless a
// function for the name says otherwise.
func keyless(ctx context.Context, err error) error {
	if !errors.Is(err, core.ErrInvalid) {
		return err
	}
	message := "the arguments do not say what to lock"
	if source, ok := errors.AsType[*key.SourceError](err); ok { // it has no value of the arguments
		message += ": {" + source.Source + "} is " + source.Reason()
	}
	return failure(ctx, message, TypeKey, err, temporal.ApplicationErrorOptions{NonRetryable: true})
}

func failure(ctx context.Context, message, kind string, cause error, options temporal.ApplicationErrorOptions) error {
	activity.GetLogger(ctx).Warn("holdfast: "+message, "error", cause)
	options.Cause = &hidden{cause}
	return temporal.NewApplicationErrorWithOptions(message, kind, options)
}

// hidden is a cause for errors.Is and errors.As in this process. The workflow's history keeps no text of it, and the
// worker's log has it.
type hidden struct{ err error }

func (*hidden) Error() string { return "see the worker's log" }

func (h *hidden) Is(target error) bool { return errors.Is(h.err, target) }
func (h *hidden) As(target any) bool   { return errors.As(h.err, target) }
