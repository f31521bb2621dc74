package rivermw

import (
	"context"
	"fmt"
	"strings"

	"github.com/riverqueue/river/rivertype"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
)

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
	return optionFunc(func(m *middleware) error {
		k, err := adapter.NewKey(template, sources)
		if err != nil {
			return fmt.Errorf("WithKind(%q): %w", kind, err)
		}
		return m.add(kind, k, opts)
	})
}

// WithKindFunc is [WithKind] with a function that returns the name to lock. Use key.Key's Name, of
// package core/key, for values that come from outside.
//
// If it returns an error, the worker does not run. An error that matches [core.ErrInvalid] cancels the job.
// Any other error is returned unchanged, so River retries the job.
func WithKindFunc(kind string, name func(context.Context, *rivertype.JobRow) (string, error), opts ...core.Option) Option {
	return optionFunc(func(m *middleware) error {
		k, err := adapter.KeyFunc(kind, name)
		if err != nil {
			return fmt.Errorf("WithKindFunc(%q): %w", kind, err)
		}
		return m.add(kind, k, opts)
	})
}

func (m *middleware) add(kind string, k adapter.Key[*rivertype.JobRow], opts []core.Option) error {
	if strings.TrimSpace(kind) == "" || m.rules[kind] != nil {
		return fmt.Errorf("kind %q: %w: empty, or it has a rule already", kind, core.ErrInvalid)
	}
	defaults := []core.Option{core.WithWait(0), core.WithDedupScope(kind)}
	r, err := adapter.NewRule(m.locks, k, append(defaults, opts...)...)
	if err != nil {
		return fmt.Errorf("kind %q: %w", kind, err)
	}
	m.rules[kind] = r
	return nil
}
