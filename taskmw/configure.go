package taskmw

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
)

const (
	defaultConflictDelay = 5 * time.Second
	maxConflictDelay     = 365 * 24 * time.Hour
)

// ConfigOption configures [Configure].
type ConfigOption interface{ apply(*composer) }

type configOptionFunc func(*composer)

func (f configOptionFunc) apply(c *composer) { f(c) }

// WithConflictDelay sets the time, ± 20%, after which a task that found its name held is tried again.
// The default is 5 s. Zero means the server's next check of the retry queue, every
// asynq.Config.DelayedTaskCheckInterval. asynq counts in whole seconds. If it is given twice, the
// last one wins. A negative duration, or one above a year, is an error.
func WithConflictDelay(d time.Duration) ConfigOption {
	return configOptionFunc(func(c *composer) { c.delay = d })
}

// Configure prepares a server for [Middleware]: a conflict is not a failure. It does not use up the
// task's retries, and is retried soon. Configure panics where [Configured] returns an error, and on a
// nil cfg.
//
// Call it last, on a complete config, because it wraps what is there:
//
//   - IsFailure and RetryDelayFunc, yours or asynq's own, decide on every other error.
//   - ErrorHandler is not told of conflicts, which are no errors, except one that archives its task.
//   - BaseContext's context gets a mark, so that the middleware knows that the server is ready.
//
// If IsFailure is replaced later, conflicts count as failures again. The middleware notices that after
// the first one, logs a warning, and does as on a server without Configure.
//
// If it is called several times, the options of the last call win.
//
// A task in conflict stays in asynq's retry queue as long as its name is held, whatever its MaxRetry.
// Only its last attempt, and asynq.Deadline, can end that.
func Configure(cfg *asynq.Config, opts ...ConfigOption) {
	if cfg == nil {
		panic("taskmw: Configure: nil config")
	}
	configured, err := Configured(*cfg, opts...)
	if err != nil {
		panic(err.Error())
	}
	*cfg = configured
}

// Configured is like [Configure], but leaves cfg unchanged and returns a new config. For an option
// that cannot work it returns an error that matches [core.ErrInvalid].
func Configured(cfg asynq.Config, opts ...ConfigOption) (asynq.Config, error) {
	c := composer{delay: defaultConflictDelay, mark: new(mark)}
	for _, o := range opts {
		if o == nil {
			return cfg, fmt.Errorf("taskmw: %w: nil option", core.ErrInvalid)
		}
		o.apply(&c)
	}
	if c.delay < 0 || c.delay > maxConflictDelay {
		return cfg, fmt.Errorf("taskmw: WithConflictDelay(%s): %w: negative, or more than a year", c.delay, core.ErrInvalid)
	}
	cfg.BaseContext = c.baseContext(cfg.BaseContext)
	cfg.IsFailure = c.isFailure(cfg.IsFailure)
	cfg.RetryDelayFunc = c.retryDelay(cfg.RetryDelayFunc)
	cfg.ErrorHandler = c.errorHandler(cfg.ErrorHandler)
	return cfg, nil
}

// composer puts the door's part around what a config has. Every function may be nil, which
// stands for asynq's default.
type composer struct {
	delay time.Duration
	mark  *mark
}

func (c composer) baseContext(next func() context.Context) func() context.Context {
	if next == nil {
		next = context.Background
	}
	return func() context.Context { return context.WithValue(next(), configuredKey{}, c.mark) }
}

func (c composer) isFailure(next func(error) bool) func(error) bool {
	if next == nil {
		next = func(err error) bool { return err != nil }
	}
	return func(err error) bool {
		if excused(err) {
			c.mark.asked.Store(true)
			return false
		}
		return next(err)
	}
}

func (c composer) retryDelay(next asynq.RetryDelayFunc) asynq.RetryDelayFunc {
	if next == nil {
		next = asynq.DefaultRetryDelayFunc
	}
	return func(n int, err error, t *asynq.Task) time.Duration {
		if !excused(err) {
			return next(n, err, t)
		}
		spread := c.delay / 5
		return c.delay - spread + rand.N(2*spread+1) //nolint:gosec // G404: jitter is no secret
	}
}

func (composer) errorHandler(next asynq.ErrorHandler) asynq.ErrorHandler {
	if next == nil {
		return nil
	}
	return asynq.ErrorHandlerFunc(func(ctx context.Context, t *asynq.Task, err error) {
		if _, ok := errors.AsType[*postponedError](err); ok {
			return
		}
		if conflict, ok := errors.AsType[*ConflictError](err); ok && !conflict.Last && !isFinal(err) {
			return
		}
		next.HandleError(ctx, t, err)
	})
}
