package taskmw

import (
	"context"
	"errors"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core/adapter"
)

// configured is the key of the mark that Configure leaves in the context of a server's tasks.
type configured struct{}

// Configure prepares a server for [Middleware]: a conflict is not a failure. It does not use up the
// task's retries, and is retried soon. A server without it fails its tasks with an error that says what to add.
//
// Call it last, on a complete config, because it wraps what is there:
//
//   - IsFailure and RetryDelayFunc, yours or asynq's own, decide on every other error.
//   - ErrorHandler is not told of conflicts, which are no errors, except one that archives its task.
//   - BaseContext's context gets a mark, so that the middleware knows that the server is ready.
//
// If IsFailure or RetryDelayFunc is replaced later, conflicts are failures again.
//
// A task in conflict stays in asynq's retry queue as long as its name is held, whatever its MaxRetry.
// Only its last attempt, and asynq.Deadline, can end that.
func Configure(cfg *asynq.Config) {
	base, isFailure, retryDelay, handler := cfg.BaseContext, cfg.IsFailure, cfg.RetryDelayFunc, cfg.ErrorHandler
	cfg.BaseContext = func() context.Context {
		ctx := context.Background()
		if base != nil {
			ctx = base()
		}
		return context.WithValue(ctx, configured{}, true)
	}
	cfg.IsFailure = func(err error) bool {
		if isFailure == nil || err == nil {
			return err != nil && !excused(err)
		}
		return !excused(err) && isFailure(err)
	}
	if retryDelay == nil {
		retryDelay = asynq.DefaultRetryDelayFunc
	}
	cfg.RetryDelayFunc = func(n int, err error, t *asynq.Task) time.Duration {
		if p, ok := errors.AsType[*postponed](err); ok {
			return adapter.Spread(p.delay)
		}
		return retryDelay(n, err, t)
	}
	if handler != nil {
		cfg.ErrorHandler = asynq.ErrorHandlerFunc(func(ctx context.Context, t *asynq.Task, err error) {
			p, _ := errors.AsType[*postponed](err)
			if isLast := p != nil && p.held && p.last; isLast || isFinal(err) || !excused(err) {
				handler.HandleError(ctx, t, err)
			}
		})
	}
}
