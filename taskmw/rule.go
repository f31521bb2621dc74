package taskmw

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
)

// Option configures a [Door].
type Option interface{ apply(*Door) error }

type optionFunc func(*Door) error

func (f optionFunc) apply(d *Door) error { return f(d) }

// keyFunc makes the lock's name from a task.
type keyFunc func(context.Context, *asynq.Task) (string, error)

// rule is what holds for the tasks of one pattern.
type rule struct {
	pattern string
	prefix  string // of the types that match, for a pattern ending in *
	key     keyFunc
	action  Action
	locker  *core.Locker
	seats   *core.Locker  // for Coalesce
	byType  bool          // the default dedup scope is known only when a task is
	opts    []core.Option // the user's, for core
}

// WithType locks the tasks of a type by a key such as "order:{order_id}"; the package's
// documentation lists the sources that a key may have.
//
// A pattern is a task type, or a prefix followed by "*": "order:*", or "*" for all. The
// exact type wins over prefixes, and a longer prefix over a shorter one, whatever their
// order. The same pattern twice is an error.
//
// The door does not wait for a name that is held: asynq retries the task. [core.WithWait]
// makes it wait so long before that, and [OnConflict], an option of a rule too, chooses
// another action; on a task's last attempt it waits as long as the task's own time allows,
// whatever WithWait says: asynq.Timeout has to do for waiting and work, and a worker is busy
// meanwhile. The default scope of [core.WithDedup] is the type of the task at hand.
// [core.WithLabel] does nothing: the label is the door's.
func WithType(pattern, key string, opts ...core.Option) Option {
	return optionFunc(func(d *Door) error {
		fn, err := templateKey(key)
		if err != nil {
			return fmt.Errorf("WithType(%q): %w", pattern, err)
		}
		return d.add("WithType", pattern, key, fn, opts)
	})
}

// WithTypeFunc is [WithType] with a function that returns the name to lock. Values that
// come from outside want [key.Key.Name], which keeps two different ones apart.
//
// If key returns an error, the handler does not run. One that matches [core.ErrInvalid]
// archives the task; any other is returned as it is, so that asynq retries the task unless
// the error wraps asynq.SkipRetry. Observers see the pattern in place of a key template.
func WithTypeFunc(pattern string, key func(context.Context, *asynq.Task) (string, error), opts ...core.Option) Option {
	return optionFunc(func(d *Door) error {
		if key == nil {
			return fmt.Errorf("WithTypeFunc(%q): %w: nil function", pattern, core.ErrInvalid)
		}
		return d.add("WithTypeFunc", pattern, text(pattern, ""), key, opts)
	})
}

// WithLogger sets where the warning about a missing [Configure] goes. The default, also
// chosen by nil, is slog.Default(); a later repeat wins.
func WithLogger(log *slog.Logger) Option {
	return optionFunc(func(d *Door) error {
		d.log = log
		return nil
	})
}

func (d *Door) add(option, pattern, template string, key keyFunc, opts []core.Option) error {
	prefix, many := strings.CutSuffix(pattern, "*")
	if strings.TrimSpace(pattern) == "" || strings.Contains(prefix, "*") {
		return fmt.Errorf("%s(%q): %w: a pattern is a task type, or a prefix and one * at its end",
			option, pattern, core.ErrInvalid)
	}
	isRepeat := func(r *rule) bool { return r.pattern == pattern }
	if d.exact[pattern] != nil || slices.ContainsFunc(d.prefixes, isRepeat) {
		return fmt.Errorf("%s(%q): %w: the pattern has a rule already", option, pattern, core.ErrInvalid)
	}
	r, err := d.compile(pattern, template, opts)
	if err != nil {
		return fmt.Errorf("%s(%q): %w", option, pattern, err)
	}
	r.prefix, r.key = prefix, key
	window, _ := r.locker.Dedup()
	r.byType = many && window > 0
	if !many {
		d.exact[pattern] = r
		return nil
	}
	d.prefixes = append(d.prefixes, r)
	slices.SortFunc(d.prefixes, func(a, b *rule) int { return len(b.prefix) - len(a.prefix) })
	return nil
}

// compile makes a rule's Lockers of its options.
func (d *Door) compile(pattern, template string, opts []core.Option) (*rule, error) {
	action, others, err := actionOf(opts)
	if err != nil {
		return nil, err
	}
	defaults := []core.Option{core.WithWait(0), core.WithTemplate(template), core.WithDedupScope(text(pattern, ""))}
	locker, err := d.locks.With(slices.Concat(defaults, others)...)
	if err != nil {
		return nil, err
	}
	r := &rule{pattern: pattern, action: action, locker: locker, opts: others}
	if action != Coalesce {
		return r, nil
	}
	if window, _ := locker.Dedup(); window > 0 {
		return nil, fmt.Errorf("OnConflict(Coalesce): %w: with WithDedup the one that waits would never run", core.ErrInvalid)
	}
	r.seats, err = d.locks.With(seatOptions(template)...)
	return r, err
}

// match returns the most specific rule for a task type, nil if there is none.
func (d *Door) match(taskType string) *rule {
	if r := d.exact[taskType]; r != nil {
		return r
	}
	for _, r := range d.prefixes {
		if strings.HasPrefix(taskType, r.prefix) {
			return r
		}
	}
	return nil
}
