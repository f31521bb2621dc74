package taskmw

import (
	"context"
	"fmt"
	"maps"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
)

// FenceHeader is the header of a task that carries the fence, a decimal number, of the caller that
// enqueued it to the resource that the task writes.
const FenceHeader = "holdfast-fence"

// FenceHeaders returns a copy of headers, which may be nil, with the fence of the lease of name that
// ctx stands under. It replaces a fence that is already there:
//
//	headers, err := taskmw.FenceHeaders(ctx, "order:42", nil)
//	...
//	task := asynq.NewTaskWithHeaders("order:index", payload, headers)
//
// A task that a holder has enqueued is then refused if a later holder has written. If there is no
// such lease, or it has no fence, the error is fence.ErrInvalid. Do not enqueue the task then.
func FenceHeaders(ctx context.Context, name string, headers map[string]string) (map[string]string, error) {
	f, err := core.FenceFor(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("taskmw: FenceHeaders: %w: %w", fence.ErrInvalid, err)
	}
	headers = maps.Clone(headers)
	if headers == nil {
		headers = make(map[string]string, 1)
	}
	headers[FenceHeader] = fmt.Sprint(f)
	return headers, nil
}

// Fence reads the fence that came with a task, for a guard of package fence. If there is no fence, or
// an invalid one, the error matches fence.ErrInvalid and asynq.SkipRetry, because no other attempt
// would have one.
//
// It is the fence of the caller that enqueued the task. It locks nothing, and its lease has usually
// ended when the task runs. That does no harm: the guard refuses the task only if a newer holder has
// written. The task should then return asynq.SkipRetry. You can trust the fence as much as those who
// can enqueue. A task that runs under its own lock, see [Middleware], writes with that lock's fence:
// core.FenceFor.
func Fence(t *asynq.Task) (uint64, error) {
	text, ok := t.Headers()[FenceHeader]
	if !ok {
		return 0, fmt.Errorf("taskmw: %w: no header %s: %w", fence.ErrInvalid, FenceHeader, asynq.SkipRetry)
	}
	f, err := fence.Parse(text)
	if err != nil {
		return 0, fmt.Errorf("taskmw: %s: %w: %w", FenceHeader, err, asynq.SkipRetry)
	}
	return f, nil
}
