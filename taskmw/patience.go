package taskmw

import (
	"context"
	"log/slog"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
)

// patience says how one attempt at a task deals with a name that is held.
type patience struct {
	waits bool // as long as the task's time allows, where the rule would have it retried
	last  bool // a failure of this attempt archives the task
}

// patience decides it: an attempt that has another one after it does not wait. On the last
// one asynq asks neither IsFailure nor RetryDelayFunc, and a server that [Configure] has not
// seen counts every conflict as a failure.
func (d *Door) patience(ctx context.Context) patience {
	retried, ok := asynq.GetRetryCount(ctx)
	limit, _ := asynq.GetMaxRetry(ctx)
	last := ok && retried >= limit
	missing := markOf(ctx).missing()
	if missing != "" {
		d.warn(ctx, missing)
	}
	return patience{waits: last || missing != "", last: last}
}

// isOver says that asynq does not bring a task again that did not run, and came to err. Where the context has
// ended, asynq has decided without asking: it may have put the task back into the queue.
func (p patience) isOver(ctx context.Context, err error) bool {
	return err == nil || isFinal(err) || p.last && ctx.Err() == nil
}

const (
	maxMargin  = 250 * time.Millisecond
	longBudget = 365 * 24 * time.Hour
)

// budget is how long to wait. It ends a little before the task's time does: once that is
// over, asynq does not listen any more, and archives the task without saying why. A handler
// that gets the name with so little time left could not finish.
func budget(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return core.WaitForever
	}
	left := time.Until(deadline)
	switch wait := left - min(maxMargin, left/10); {
	case wait < time.Millisecond:
		return 0
	case wait > longBudget:
		return core.WaitForever
	default:
		return wait
	}
}

// warn tells, once, what the server's config lacks.
func (d *Door) warn(ctx context.Context, missing string) {
	if !d.warned.Swap(true) {
		d.logger().WarnContext(ctx, "taskmw: "+missing+
			": tasks that find their lock held wait for it and keep a worker busy")
	}
}

func (d *Door) logger() *slog.Logger {
	if d.log != nil {
		return d.log
	}
	return slog.Default()
}

// unrun tells that a task is finished without a run. It names no lock and no holder.
func (v *delivery) unrun(because string) {
	id, _ := asynq.GetTaskID(v.ctx)
	queue, _ := asynq.GetQueueName(v.ctx)
	v.door.logger().LogAttrs(v.ctx, slog.LevelInfo, "holdfast: task finished without a run",
		slog.String("because", because), slog.String("type", v.task.Type()),
		slog.String("queue", queue), slog.String("id", id))
}
