package rivermw

import (
	"context"
	"fmt"
	"strings"

	"github.com/riverqueue/river/rivertype"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
)

// rule is what holds for the jobs of a kind.
type rule struct {
	locks *core.Locker
	names namesFunc
}

// namesFunc makes the names of the locks from a job, mostly one.
type namesFunc func(context.Context, *rivertype.JobRow) ([]string, error)

// WithKind locks the jobs of a kind by a key such as "order:{order_id}". The package documentation lists
// the sources of a key. The same kind twice is an error. A job that was inserted under another name of its kind
// (river.JobArgsWithKindAliases) keeps that name. It runs without a lock if that name has no rule, so give it one,
// with the same [core.WithDedupScope] if it has a WithDedup.
//
// A job that needs several names at once has several templates, with a space between them.
//
// By default the middleware does not wait for a held name: the job is snoozed. With [core.WithWait] it
// waits that long first, and a worker is busy meanwhile. The job's timeout begins after the wait, so keep both
// together below River's RescueStuckJobsAfter. The default scope of [core.WithDedup] is the kind.
// A holder's default label has the job: "worker-3:4711 job:ship_order:17".
func WithKind(kind, template string, opts ...core.Option) Option {
	return optionFunc(func(d *Door) error {
		k, err := adapter.NewKey(template, sources)
		if err != nil {
			return fmt.Errorf("WithKind(%q): %w", kind, err)
		}
		return d.add(kind, template, k.Names, opts)
	})
}

// WithKindFunc is [WithKind] with a function that returns the name to lock. Use key.Key's Name, of
// package core/key, for values that come from outside.
//
// If it returns an error, the worker does not run. An error that matches [core.ErrInvalid] cancels the job.
// Any other error is returned unchanged, so River retries the job.
func WithKindFunc(kind string, name func(context.Context, *rivertype.JobRow) (string, error), opts ...core.Option) Option {
	return optionFunc(func(d *Door) error {
		if name == nil {
			return fmt.Errorf("WithKindFunc(%q): %w: nil function", kind, core.ErrInvalid)
		}
		return d.add(kind, kind, func(ctx context.Context, job *rivertype.JobRow) ([]string, error) {
			n, err := name(ctx, job)
			return []string{n}, err
		}, opts)
	})
}

func (d *Door) add(kind, template string, names namesFunc, opts []core.Option) error {
	if strings.TrimSpace(kind) == "" || d.rules[kind] != nil {
		return fmt.Errorf("kind %q: %w: empty, or it has a rule already", kind, core.ErrInvalid)
	}
	defaults := []core.Option{core.WithWait(0), core.WithTemplate(template), core.WithDedupScope(kind)}
	locks, err := d.locks.With(append(defaults, opts...)...)
	if err != nil {
		return fmt.Errorf("kind %q: %w", kind, err)
	}
	d.rules[kind] = &rule{locks, names}
	return nil
}
