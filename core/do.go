package core

import (
	"context"
)

// Do runs fn while it holds name, and returns fn's error as it is.
//
// fn's context ends with ctx or with the lease, whichever is first. Its cause tells which. When ctx
// ends, the name stays locked, and renewed, until fn has returned. fn should stop when its context
// ends. If the lease was lost, Do joins a *[LostError] to fn's error, whether fn has noticed the
// loss or not. If fn did not run, the errors are those of [Locker.Acquire].
//
// When fn has returned, the watchdog stops and the lease is released. With [WithDedup] the marker
// is left if fn returned nil. A release that could not be confirmed goes to observer and log, not
// to the result. A panic, or runtime.Goexit, passes through after the release.
func (l *Locker) Do(ctx context.Context, name string, fn func(context.Context) error, opts ...Option) error {
	if fn == nil {
		return invalidf("fn: nil")
	}
	cfg, err := l.resolve(opts)
	if err != nil {
		return err
	}
	x, err := l.acquire(ctx, name, cfg, cfg.wait)
	if err != nil {
		return err
	}
	return runHeld(ctx, x.workContext(), fn, x)
}

// runHeld runs fn under its context, and then ends what it holds.
func runHeld(ctx, under context.Context, fn func(context.Context) error, held interface {
	end(ctx context.Context, mark bool) error
	Finish(ctx context.Context, workErr error) error
}) error {
	returned := false
	defer func() {
		if !returned { // a panic or Goexit: no recover, so that its stack stays whole
			_ = held.end(context.WithoutCancel(ctx), false)
		}
	}()
	err := fn(under)
	returned = true
	return held.Finish(ctx, err)
}

// DoValue is [Locker.Do] for a function with a result. If fn ran, the result is fn's, even if there
// is an error.
func DoValue[T any](ctx context.Context, l *Locker, name string, fn func(context.Context) (T, error), opts ...Option) (T, error) {
	var v T
	if fn == nil {
		return v, invalidf("fn: nil")
	}
	err := l.Do(ctx, name, func(ctx context.Context) (err error) {
		v, err = fn(ctx)
		return err
	}, opts...)
	return v, err
}

// Wrap is the decorator. It returns a function that runs fn as [Locker.Do] does, and holds the name
// that key makes from each request. If key returns an error, fn does not run, and that error comes
// back as it is.
//
// The options are checked once, when Wrap is called. Wrap panics on a nil argument and on an option
// that cannot work; [DoValue] returns such an error instead.
func Wrap[Req, Resp any](l *Locker, key func(context.Context, Req) (string, error), fn func(context.Context, Req) (Resp, error), opts ...Option) func(context.Context, Req) (Resp, error) {
	if key == nil || fn == nil {
		panic("core: Wrap: nil function")
	}
	locks, err := l.With(opts...)
	if err != nil {
		panic("core: Wrap: " + err.Error())
	}
	return func(ctx context.Context, req Req) (Resp, error) {
		name, err := key(ctx, req)
		if err != nil {
			var none Resp
			return none, err
		}
		return DoValue(ctx, locks, name, func(ctx context.Context) (Resp, error) { return fn(ctx, req) })
	}
}
