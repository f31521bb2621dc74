package temporalmw

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/temporal"

	"github.com/holdfast-go/holdfast/core"
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

// refused is the outcome of an activity that did not run. What a workflow's history keeps of it names no holder.
func refused(ctx context.Context, err error) error {
	switch core.KindOf(err) {
	case core.KindHeld:
		later := delay - delay/5 + rand.N(2*delay/5+1) //nolint:gosec // G404: it spreads retries
		return failure(ctx, "the lock is held", TypeHeld, err, temporal.ApplicationErrorOptions{NextRetryDelay: later})
	case core.KindDuplicate:
		return failure(ctx, "it was done before", TypeDuplicate, err, temporal.ApplicationErrorOptions{NonRetryable: true})
	case core.KindInvalid:
		return keyless(ctx, err)
	case core.KindEnded:
		if errors.Is(err, context.Canceled) {
			return context.Canceled
		}
		return context.DeadlineExceeded
	default:
		message := "the lock service did not answer"
		if errors.Is(err, core.ErrDraining) || errors.Is(err, core.ErrClosed) { // the next attempt may be another worker's
			message = "the worker is about to stop"
		}
		return failure(ctx, message, TypeUnavailable, err, temporal.ApplicationErrorOptions{})
	}
}

// keyless is the outcome of an activity without a usable name. Another attempt would find the same.
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

// settled is the outcome of an activity that ran. One that lost its lock decides nothing: neither its result counts,
// nor that its error is final.
func settled(ctx context.Context, result any, own, err error) (any, error) {
	lost, ok := errors.AsType[*core.LostError](err)
	if !ok {
		return result, own
	}
	cause := &undecided{errors.Join(own, lost)}
	return nil, failure(ctx, "the lock was lost while the activity ran", TypeLost, cause, temporal.ApplicationErrorOptions{})
}

// undecided is what a loss was joined with, but no cancellation: the SDK would find it and report that instead of the
// loss, and a worker that stops cancels activities whose cancellation the server has not asked for.
type undecided struct{ err error }

func (u *undecided) Error() string { return u.err.Error() }

func (u *undecided) Is(target error) bool {
	return target != context.Canceled && errors.Is(u.err, target)
}

func (u *undecided) As(target any) bool {
	if _, cancelled := target.(**temporal.CanceledError); cancelled {
		return false
	}
	return errors.As(u.err, target)
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
