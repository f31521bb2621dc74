package adapter

import (
	"context"
	"errors"
	"fmt"

	"github.com/holdfast-go/holdfast/core"
)

// Rule is a key and options made ready. It is safe for concurrent use.
type Rule[R any] struct {
	locks *core.Locker
	key   Key[R]
}

// NewRule checks the options. What cannot work is [core.ErrInvalid]. By default observers get the key's text
// as the template.
func NewRule[R any](l *core.Locker, k Key[R], opts ...core.Option) (*Rule[R], error) {
	if k.names == nil {
		return nil, fmt.Errorf("%w: no key", core.ErrInvalid)
	}
	locks, err := l.With(append([]core.Option{core.WithTemplate(k.text)}, opts...)...)
	if err != nil {
		return nil, err
	}
	return &Rule[R]{locks, k}, nil
}

// Locker has the rule's options as its defaults.
func (r *Rule[R]) Locker() *core.Locker { return r.locks }

// errFailed stands for the work's own error, whose losses are those of other leases.
var errFailed = errors.New("the work did not succeed")

// Run runs work while it holds the names of req. The context of work ends when a lock is lost. With
// [core.WithDedup], work is done if it returns nil. A panic passes through after the release.
func (r *Rule[R]) Run(ctx context.Context, req R, work func(context.Context) error, opts ...core.Option) Outcome {
	return r.RunWith(ctx, req, work, func(ctx context.Context, names []string, inside func(context.Context) error) error {
		if len(names) == 1 {
			return r.locks.Do(ctx, names[0], inside, opts...)
		}
		return r.locks.DoAll(ctx, names, inside, opts...)
	})
}

// RunWith is Run with another way to hold the names, such as [core.Locker.DoAttached] or package coalesce. hold calls
// inside, once at most, while it holds them, and returns what core's Do would.
func (r *Rule[R]) RunWith(ctx context.Context, req R, work func(context.Context) error,
	hold func(ctx context.Context, names []string, inside func(context.Context) error) error,
) Outcome {
	names, err := r.key.Names(ctx, req)
	if err != nil {
		return unnamed(err)
	}
	var out Outcome
	ran := false
	err = hold(ctx, names, func(ctx context.Context) error {
		ran = true
		if out.Own = work(ctx); out.Own != nil {
			return errFailed
		}
		return nil
	})
	if !ran {
		return refused(err)
	}
	out.Reason = Done
	if lost, ok := errors.AsType[*core.LostError](err); ok {
		out.Reason, out.Err = Lost, lost
	}
	return out
}
