package rivermw

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/riverqueue/river/rivertype"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
)

// settled is what River is told of a job.
func (m *middleware) settled(ctx context.Context, job *rivertype.JobRow, out adapter.Outcome) error {
	switch out.Reason {
	case adapter.Lost:
		return &lostError{out.Join()}
	case adapter.Duplicate:
		m.unrun(ctx, job)
		return nil
	case adapter.Held:
		return &rivertype.JobSnoozeError{Duration: spread(m.snooze)}
	case adapter.Stopping:
		if errors.Is(out.Err, core.ErrDraining) { // another process has the job at once
			return &rivertype.JobSnoozeError{Duration: spread(m.snooze)}
		}
	case adapter.BadKey, adapter.Misconfigured: // another attempt would find the same, unless a function says otherwise
		if errors.Is(out.Err, core.ErrInvalid) {
			return rivertype.JobCancel(fmt.Errorf("rivermw: %w", out.Err))
		}
	default:
	}
	return out.Join()
}

// unrun tells that a job is completed without a run: River shows no difference. It names no lock and no holder.
func (m *middleware) unrun(ctx context.Context, job *rivertype.JobRow) {
	cmp.Or(m.log, slog.Default()).LogAttrs(ctx, slog.LevelInfo, "holdfast: job completed without a run", slog.String("because", "its work is already done"),
		slog.String("kind", job.Kind), slog.String("queue", job.Queue), slog.Int64("id", job.ID))
}

// lostError is a worker's verdict without its finality: with a lost lease it is no more to be trusted than success.
type lostError struct{ err error }

func (e *lostError) Error() string { return e.err.Error() }

func (e *lostError) Is(target error) bool {
	switch target.(type) {
	case *rivertype.JobCancelError, *rivertype.JobSnoozeError:
		return false
	}
	return errors.Is(e.err, target)
}

func (e *lostError) As(target any) bool {
	switch target.(type) {
	case **rivertype.JobCancelError, **rivertype.JobSnoozeError:
		return false
	}
	return errors.As(e.err, target)
}
