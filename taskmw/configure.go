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
type ConfigOption func(*config) error

type config struct{ delay time.Duration }

// configured is the key of the mark that Configure leaves in the context of a server's tasks.
type configured struct{}

// WithConflictDelay sets the time, ± 20%, after which a task that found its name held is tried again.
// The default is 5 s. Zero means the server's next check of the retry queue, every
// asynq.Config.DelayedTaskCheckInterval. asynq counts in whole seconds. If it is given twice, the
// last one wins. A negative duration, or one above a year, is an error.
func WithConflictDelay(d time.Duration) ConfigOption {
	return func(c *config) error {
		if d < 0 || d > maxConflictDelay {
			return fmt.Errorf("WithConflictDelay(%s): %w: negative, or more than a year", d, core.ErrInvalid)
		}
		c.delay = d
		return nil
	}
}

// Configure prepares a server for [Middleware]: a conflict is not a failure. It does not use up the
// task's retries, and is retried soon. A server without it fails its tasks with an error that says what to add. Configure
// panics where [Configured] returns an error, and on a nil cfg.
//
// Call it last, on a complete config, because it wraps what is there:
//
//   - IsFailure and RetryDelayFunc, yours or asynq's own, decide on every other error.
//   - ErrorHandler is not told of conflicts, which are no errors, except one that archives its task.
//   - BaseContext's context gets a mark, so that the middleware knows that the server is ready.
//
// If IsFailure or RetryDelayFunc is replaced later, conflicts are failures again. If Configure is called several times,
// the options of the last call win.
//
// A task in conflict stays in asynq's retry queue as long as its name is held, whatever its MaxRetry.
// Only its last attempt, and asynq.Deadline, can end that.
func Configure(cfg *asynq.Config, opts ...ConfigOption) {
	if cfg == nil {
		panic("taskmw: Configure: nil config")
	}
	done, err := Configured(*cfg, opts...)
	if err != nil {
		panic(err.Error())
	}
	*cfg = done
}

// Configured is like [Configure], but leaves cfg unchanged and returns a new config. For an option
// that cannot work it returns an error that matches [core.ErrInvalid].
func Configured(cfg asynq.Config, opts ...ConfigOption) (asynq.Config, error) {
	c := config{delay: defaultConflictDelay}
	for _, o := range opts {
		if o == nil {
			return cfg, fmt.Errorf("taskmw: Configure: %w: nil option", core.ErrInvalid)
		}
		if err := o(&c); err != nil {
			return cfg, fmt.Errorf("taskmw: %w", err)
		}
	}
	c.wrap(&cfg)
	return cfg, nil
}

func (c config) wrap(cfg *asynq.Config) {
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
		if !excused(err) {
			return retryDelay(n, err, t)
		}
		spread := c.delay / 5
		return c.delay - spread + rand.N(2*spread+1) //nolint:gosec // G404: jitter is no secret
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
