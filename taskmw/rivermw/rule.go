package rivermw

import (
	"context"
	"strconv"

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
	return func(m *middleware) error { return m.rules.Add(kind, template, sources.Source, opts...) }
}

// WithKindFunc is [WithKind] with a function that returns the name to lock. Use key.Key's Name, of
// package core/key, for values that come from outside.
//
// If it returns an error, the worker does not run. An error that matches [core.ErrInvalid] cancels the job.
// Any other error is returned unchanged, so River retries the job.
func WithKindFunc(kind string, name func(context.Context, *rivertype.JobRow) (string, error), opts ...core.Option) Option {
	return func(m *middleware) error { return m.rules.AddFunc(kind, name, opts...) }
}

var sources = adapter.Document[*rivertype.JobRow]{
	JSON: map[string]func(*rivertype.JobRow) []byte{
		"":         func(job *rivertype.JobRow) []byte { return job.EncodedArgs },
		"metadata": func(job *rivertype.JobRow) []byte { return job.Metadata },
	},
	Known: map[string]func(context.Context, *rivertype.JobRow) string{
		"river:kind":  func(_ context.Context, job *rivertype.JobRow) string { return job.Kind },
		"river:queue": func(_ context.Context, job *rivertype.JobRow) string { return job.Queue },
		"river:id":    func(_ context.Context, job *rivertype.JobRow) string { return strconv.FormatInt(job.ID, 10) },
	},
}
