package rivermw

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"github.com/riverqueue/river/rivertype"

	"github.com/holdfast-go/holdfast/core"
)

// refused is the outcome of a job whose worker did not run.
func (d *Door) refused(ctx context.Context, job *rivertype.JobRow, err error) error {
	if errors.Is(err, core.ErrDraining) { // this process stops: another one has the job at once
		return &rivertype.JobSnoozeError{Duration: spread(d.snooze)}
	}
	switch core.KindOf(err) {
	case core.KindHeld:
		return &rivertype.JobSnoozeError{Duration: spread(d.snooze)}
	case core.KindDuplicate:
		d.unrun(ctx, job)
		return nil
	case core.KindInvalid:
		return keyless(err)
	default: // the context's error, unavailable, closed
		return err
	}
}

// unrun tells that a job is completed without a run: River shows no difference. It names no lock and no holder.
func (d *Door) unrun(ctx context.Context, job *rivertype.JobRow) {
	log := d.log
	if log == nil {
		log = slog.Default()
	}
	log.LogAttrs(ctx, slog.LevelInfo, "holdfast: job completed without a run", slog.String("because", "its work is already done"),
		slog.String("kind", job.Kind), slog.String("queue", job.Queue), slog.Int64("id", job.ID))
}

// keyless is the outcome of a job without a usable name. Another attempt would find the same, unless a
// function for the name says otherwise.
func keyless(err error) error {
	if !errors.Is(err, core.ErrInvalid) {
		return err
	}
	return rivertype.JobCancel(fmt.Errorf("rivermw: %w", err))
}

// settled is the outcome of a job whose worker ran: its own error, unless core tells of a loss.
func settled(own, err error) error {
	if lost, ok := errors.AsType[*core.LostError](err); ok {
		return &lostError{errors.Join(own, lost)}
	}
	return own
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
