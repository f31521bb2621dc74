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
	case adapter.Lost: // a verdict is no more to be trusted than success would be
		if isVerdict(out.Own) {
			return fmt.Errorf("%w: %s", out.Err, out.Own) //nolint:errorlint // without its finality
		}
	case adapter.Duplicate:
		m.unrun(ctx, job)
		return nil
	case adapter.Held:
		return &rivertype.JobSnoozeError{Duration: adapter.Spread(m.snooze)}
	case adapter.Stopping:
		if errors.Is(out.Err, core.ErrDraining) { // another process has the job at once
			return &rivertype.JobSnoozeError{Duration: adapter.Spread(m.snooze)}
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

// isVerdict says that River does not try a job again after err, or not by its policy.
func isVerdict(err error) bool {
	_, cancelled := errors.AsType[*rivertype.JobCancelError](err)
	_, snoozed := errors.AsType[*rivertype.JobSnoozeError](err)
	return cancelled || snoozed
}
