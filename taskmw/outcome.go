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

// postponement is what err says of a task that has not failed, nil if it has.
func postponement(err error) *postponed {
	p, _ := errors.AsType[*postponed](err)
	return p
}

// settled is what asynq is told of a task.
func (a *attempt) settled(out adapter.Outcome) error {
	switch {
	case out.Reason == adapter.Lost && isFinal(out.Own): // a final verdict is no more to be trusted than success would be
		return fmt.Errorf("%w: %s", out.Err, out.Own) //nolint:errorlint // without its finality
	case out.Ran():
		return out.Join()
	case out.Reason == adapter.BadKey, out.Reason == adapter.Misconfigured: // another attempt would find the same, unless a function says otherwise
		return archived(out.Err)
	case out.Reason == adapter.Duplicate:
		return a.unrun("its work is already done")
	case out.Reason == adapter.Held && a.isTwin(out.Err):
		return a.unrun("another task of its type runs, or has run just now")
	case errors.Is(out.Err, coalesce.ErrCovered):
		return a.unrun("another task of its type waits, and runs after this moment")
	case out.Reason == adapter.Held, errors.Is(out.Err, core.ErrDraining):
		return &postponed{out.Err, out.Reason == adapter.Held, a.last, a.m.delay}
	}
	return out.Err // unavailable, closed, or the context's error
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

// unrun tells that a task is finished without a run, and so has not failed. It names no lock and no holder.
func (a *attempt) unrun(because string) (finished error) {
	id, _ := asynq.GetTaskID(a.ctx)
	queue, _ := asynq.GetQueueName(a.ctx)
	cmp.Or(a.m.log, slog.Default()).LogAttrs(a.ctx, slog.LevelInfo, "holdfast: task finished without a run",
		slog.String("because", because), slog.String("type", a.task.Type()),
		slog.String("queue", queue), slog.String("id", id))
	return nil
}
