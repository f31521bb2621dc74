// Package settings makes the settings of a framework's middleware ready.
package settings

import (
	"context"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/httpmw"
	"github.com/holdfast-go/holdfast/httpmw/internal/observe"
	"github.com/holdfast-go/holdfast/httpmw/internal/rule"
)

// Framework is what a framework has of its own. C is what its handlers get of a request, and R what names are made of.
type Framework[R rule.Request, C any] struct {
	// Request is c with what Bind has decoded, and its context. Of is c again.
	Request func(c C, bound any) (context.Context, R)
	Of      func(R) C
	// Run calls next while c has the context of a lease, and lets seen see what is answered.
	Run    func(ctx context.Context, c C, seen *observe.Response, next func() error) error
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

// Bind is a handler that decodes a request before it is locked. A [httpmw.Problem] of decode is answered; what its other errors
// mean the framework knows. err is that of New.
func Bind[R rule.Request, C, T any](l *Lock[R, C], err error, decode, handler func(C, *T) error) (func(C) error, error) {
	if err == nil && handler == nil {
		err = fmt.Errorf("%w: Bind without a function", core.ErrInvalid)
	}
	return func(c C) error {
		req := new(T)
		if err := decode(c, req); err != nil {
			return l.own(c, err)
		}
		return l.Serve(c, req, func() error { return handler(c, req) })
	}, err
}

// Serve calls next under the lock of a request, or without, if it is skipped. It returns what the framework gets.
func (l *Lock[R, C]) Serve(c C, bound any, next func() error) error {
	if l.skip != nil && l.skip(c) {
		return l.own(c, next())
	}
	ctx, req := l.Request(c, bound)
	out := l.rule.Run(ctx, req, func(ctx context.Context, seen *observe.Response) error {
		return l.Run(ctx, c, seen, next)
	})
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
