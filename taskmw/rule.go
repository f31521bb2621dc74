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
	names   namesFunc
	several bool // names
	action  Action
	locker  *core.Locker
	seats   *core.Locker  // for Coalesce
	byType  bool          // the default dedup scope is known only when a task is
	opts    []core.Option // the user's, for core
}

// WithType locks the tasks of a type by a key such as "order:{order_id}". The package documentation
// lists the sources of a key.
//
// A task that needs several names at once has several templates, with a space between them. Such a
// rule cannot have [Skip] or [Coalesce], and [Enqueue] cannot hand off to it.
//
// A pattern is a task type, or a prefix followed by "*": "order:*", or "*" for all. The exact type
// wins over prefixes, and a longer prefix over a shorter one, in any order. The same pattern twice is
// an error.
//
// By default the middleware does not wait for a held name: asynq retries the task. With
// [core.WithWait] it waits that long first. [OnConflict], also an option of a rule, chooses another
// action. On a task's last attempt it waits as long as the task's own time allows, whatever WithWait
// says. So asynq.Timeout must cover waiting and work, and a worker is busy meanwhile.
//
// The default scope of [core.WithDedup] is the type of the current task. [core.WithLabel] does
// nothing, because the middleware sets the label.
func WithType(pattern, key string, opts ...core.Option) Option {
	return optionFunc(func(d *Door) error {
		fn, err := templateNames(key)
		if err != nil {
			return fmt.Errorf("WithType(%q): %w", pattern, err)
		}
		return d.add("WithType", pattern, key, fn, opts)
	})
}

// WithTypeFunc is [WithType] with a function that returns the name to lock. Use key.Key's Name, of
// package core/key, for values that come from outside: it gives different values different names.
//
// If key returns an error, the handler does not run. An error that matches [core.ErrInvalid] archives
// the task. Any other error is returned unchanged, so asynq retries the task unless the error wraps
// asynq.SkipRetry. Observers see the pattern instead of a key template.
func WithTypeFunc(pattern string, key func(context.Context, *asynq.Task) (string, error), opts ...core.Option) Option {
	return optionFunc(func(d *Door) error {
		if key == nil {
			return fmt.Errorf("WithTypeFunc(%q): %w: nil function", pattern, core.ErrInvalid)
		}
		return d.add("WithTypeFunc", pattern, text(pattern, ""), one(key), opts)
	})
}

// WithLogger sets where the middleware logs: a warning about a missing [Configure], and a line at level
// Info for each task that is finished without a run, with the task's type, queue and ID. The default,
// also for nil, is slog.Default(). If it is given twice, the last one wins.
func WithLogger(log *slog.Logger) Option {
	return optionFunc(func(d *Door) error {
		d.log = log
		return nil
	})
}

func (d *Door) add(option, pattern, keys string, names namesFunc, opts []core.Option) error {
	prefix, many := strings.CutSuffix(pattern, "*")
	if strings.TrimSpace(pattern) == "" || strings.Contains(prefix, "*") {
		return fmt.Errorf("%s(%q): %w: a pattern is a task type, or a prefix and one * at its end",
			option, pattern, core.ErrInvalid)
	}
	isRepeat := func(r *rule) bool { return r.pattern == pattern }
	if d.exact[pattern] != nil || slices.ContainsFunc(d.prefixes, isRepeat) {
		return fmt.Errorf("%s(%q): %w: the pattern has a rule already", option, pattern, core.ErrInvalid)
	}
	r, err := d.compile(pattern, keys, opts)
	if err != nil {
		return fmt.Errorf("%s(%q): %w", option, pattern, err)
	}
	r.prefix, r.names = prefix, names
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
func (d *Door) compile(pattern, keys string, opts []core.Option) (*rule, error) {
	action, others, err := actionOf(opts)
	if err != nil {
		return nil, err
	}
	defaults := []core.Option{core.WithWait(0), core.WithTemplate(keys), core.WithDedupScope(text(pattern, ""))}
	locker, err := d.locks.With(slices.Concat(defaults, others)...)
	if err != nil {
		return nil, err
	}
	r := &rule{pattern: pattern, several: strings.Contains(keys, " "), action: action, locker: locker, opts: others}
	if r.several && (action == Skip || action == Coalesce) {
		return nil, fmt.Errorf("OnConflict(%s): %w: not with several keys: a task that has one of them does other work", action, core.ErrInvalid)
	}
	if action != Coalesce {
		return r, nil
	}
	if window, _ := locker.Dedup(); window > 0 {
		return nil, fmt.Errorf("OnConflict(Coalesce): %w: with WithDedup the one that waits would never run", core.ErrInvalid)
	}
	r.seats, err = d.locks.With(seatOptions(keys)...)
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
