package taskmw

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/core/coalesce"
)

// ErrConflict says that a task did not run because someone else holds its name. The error wraps core's error, which
// matches [core.ErrHeld]. If a handler returns an error because some other lock is held, that does not match ErrConflict.
var ErrConflict = errors.New("taskmw: the task's lock is held")

// postponed is the outcome of a task that did not run, and has not failed: it runs later, or on another server.
type postponed struct {
	err   error
	held  bool // by someone else; otherwise the Locker drains
	last  bool // the attempt was the task's last one
	delay time.Duration
}

func (p *postponed) Error() string {
	if p.held && p.last {
		return fmt.Sprintf("taskmw: the lock did not come free in time on the task's last attempt: %v", p.err)
	}
	return fmt.Sprintf("taskmw: %v", p.err)
}

// Is makes errors.Is(err, ErrConflict) true.
func (p *postponed) Is(target error) bool { return p.held && target == ErrConflict }

func (p *postponed) Unwrap() error { return p.err }

// excused says of an error that it is no failure of the task.
func excused(err error) bool {
	_, is := errors.AsType[*postponed](err)
	return is
}

// settled is what asynq is told of a task.
func (a *attempt) settled(out adapter.Outcome) error {
	switch out.Reason {
	case adapter.Lost: // a final verdict is no more to be trusted than success would be
		if isFinal(out.Own) {
			return fmt.Errorf("%w: %s", out.Err, out.Own) //nolint:errorlint // without its finality
		}
		return out.Join()
	case adapter.Done:
		return out.Own
	case adapter.Duplicate:
		a.unrun("its work is already done")
		return nil
	case adapter.Held:
		if a.isTwin(out.Err) {
			a.unrun("another task of its type runs, or has run just now")
			return nil
		}
		return &postponed{out.Err, true, a.last, a.m.delay}
	case adapter.BadKey, adapter.Misconfigured: // another attempt would find the same, unless a function says otherwise
		return archived(out.Err)
	default:
	}
	switch {
	case errors.Is(out.Err, coalesce.ErrCovered):
		a.unrun("another task of its type waits, and runs after this moment")
		return nil
	case errors.Is(out.Err, core.ErrDraining):
		return &postponed{out.Err, false, a.last, a.m.delay}
	default: // unavailable, closed, or the context's error
		return out.Err
	}
}

// archived is the outcome of a task that no attempt can run. The error of a key function is its own.
func archived(err error) error {
	if !errors.Is(err, core.ErrInvalid) {
		return err
	}
	return fmt.Errorf("taskmw: %w: %w", err, asynq.SkipRetry)
}

// isFinal says that asynq does not retry a task after err.
func isFinal(err error) bool {
	return errors.Is(err, asynq.SkipRetry) || errors.Is(err, asynq.RevokeTask)
}

// unrun tells that a task is finished without a run. It names no lock and no holder.
func (a *attempt) unrun(because string) {
	id, _ := asynq.GetTaskID(a.ctx)
	queue, _ := asynq.GetQueueName(a.ctx)
	cmp.Or(a.m.log, slog.Default()).LogAttrs(a.ctx, slog.LevelInfo, "holdfast: task finished without a run",
		slog.String("because", because), slog.String("type", a.task.Type()),
		slog.String("queue", queue), slog.String("id", id))
}
