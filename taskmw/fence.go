package taskmw

import (
	"context"
	"fmt"
	"maps"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
)

// FenceHeader is the header of a task that carries the fence of the one who enqueued it, to
// the resource that the task writes: a decimal number.
const FenceHeader = "holdfast-fence"

// FenceHeaders returns a copy of headers, which may be nil, with the fence of the lease of name
// that ctx stands under, in place of one that is there:
//
//	headers, err := taskmw.FenceHeaders(ctx, "order:42", nil)
//	...
//	task := asynq.NewTaskWithHeaders("order:index", payload, headers)
//
// A task that was enqueued by a holder then loses against whoever has written after it.
// Without a lease that has a fence it is fence.ErrInvalid: a task that was meant to be
// fenced should not be enqueued without.
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

// Fence reads the fence that came with a task, for a guard of package fence. It is
// fence.ErrInvalid and asynq.SkipRetry if there is none, or what is none: no other attempt
// would have one.
//
// It is the fence of the one who enqueued the task, and no lease: it locks nothing, and the
// lease is mostly over when the task runs. That is of no harm, since the guard refuses the
// task only if somebody newer has written; then it should return asynq.SkipRetry. The fence
// is trusted as whoever can enqueue is. A task that runs under a lock of its own, see
// [Middleware], writes with that lock's fence: core.FenceFor.
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
