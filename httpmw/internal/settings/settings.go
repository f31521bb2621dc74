// Package settings makes the settings of a framework's middleware ready.
package settings

import (
	"context"

	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/observe"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// Framework is what a framework has of its own. C is what its handlers get of a request, and R what names are made of.
type Framework[R rule.Request, C any] struct {
	Of     func(R) C
	Answer func(C, *httpmw.Problem) error // the ErrorHandler
	// Known says of a handler's error that it is the handler's own answer: the framework knows it, or something is written.
	Known func(C, error) bool
}

// Lock is the middleware of a framework.
type Lock[R rule.Request, C any] struct {
	Framework[R, C]

	rule *rule.Rule[R]
	skip func(C) bool
}

// New checks settings. Fields are those of Bind, or nil.
func New[R rule.Request, C, E any](s httpmw.Settings[C, E], fields adapter.Sources[R], f Framework[R, C]) (*Lock[R, C], error) {
	ready := rule.Settings[R]{Locker: s.Locker, Key: s.Key, Fields: fields, Options: s.Options, MaxBody: s.MaxBody, Logger: s.Logger}
	if s.KeyFunc != nil {
		ready.KeyFunc = func(r R) (string, error) { return s.KeyFunc(f.Of(r)) }
	}
	made, err := rule.New(ready)
	return &Lock[R, C]{f, made, s.Skipper}, err
}

// Serve calls locked under the lock of a request, or next without, if it is skipped. It returns what the framework gets.
func (l *Lock[R, C]) Serve(ctx context.Context, req R, next func() error, locked func(ctx context.Context, seen *observe.Response) error) error {
	c := l.Of(req)
	if l.skip != nil && l.skip(c) {
		return l.own(c, next())
	}
	out := l.rule.Run(ctx, req, locked)
	if p := httpmw.ProblemOf(out); p != nil {
		return l.Answer(c, p)
	}
	return l.own(c, out.Own)
}

// own is what becomes of a handler's error. One of core has the name of a lock in its text, and its holder's label, and the
// framework does not know what it means: the table does. A Problem is its own answer.
func (l *Lock[R, C]) own(c C, err error) error {
	if err == nil || l.Known(c, err) {
		return err
	}
	if p := httpmw.ProblemFor(err); p != nil {
		return l.Answer(c, p)
	}
	return err
}
