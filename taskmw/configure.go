package taskmw

import (
	"context"
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
	if isFailure == nil {
		isFailure = func(err error) bool { return err != nil }
	}
	cfg.IsFailure = func(err error) bool { return postponement(err) == nil && isFailure(err) }
	if retryDelay == nil {
		retryDelay = asynq.DefaultRetryDelayFunc
	}
	cfg.RetryDelayFunc = func(n int, err error, t *asynq.Task) time.Duration {
		if p := postponement(err); p != nil {
			return adapter.Spread(p.delay)
		}
		return retryDelay(n, err, t)
	}
	if handler != nil {
		cfg.ErrorHandler = asynq.ErrorHandlerFunc(func(ctx context.Context, t *asynq.Task, err error) {
			if p := postponement(err); p == nil || p.last || isFinal(err) {
				handler.HandleError(ctx, t, err)
			}
		})
	}
}
