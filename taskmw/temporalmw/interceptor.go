package temporalmw

import (
	"context"
	"fmt"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
)

// Option configures the interceptor.
type Option func(*locked) error

// locked are activities behind locks.
type locked struct {
	interceptor.WorkerInterceptorBase

	rules *adapter.Rules[[]any] // by activity type
}

// Interceptor is [New] for a program that cannot run without its rules: it panics where New returns an
// error.
func Interceptor(l *core.Locker, opts ...Option) interceptor.WorkerInterceptor {
	return adapter.Must(New(l, opts...))
}

// New returns an interceptor for worker.Options. It returns an error that matches [core.ErrInvalid] for a nil Locker, a
// type that is given twice, a key that cannot be parsed, and options that cannot work.
func New(l *core.Locker, opts ...Option) (interceptor.WorkerInterceptor, error) {
	rules, err := adapter.NewRules[[]any](l)
	i := &locked{rules: rules}
	if err == nil {
		err = adapter.Apply(i, opts)
	}
	if err != nil {
		return nil, fmt.Errorf("temporalmw: %w", err)
	}
	return i, nil
}

// WithActivity locks the activities of a type by a key such as "order:{order_id}". The package documentation lists
// the sources of a key. The type is what the activity is registered as, mostly the name of its function. An
// activity that needs several names at once has several templates, with a space between them.
//
// By default the activity does not wait for a held name: it fails, and is retried. The default scope of
// [core.WithDedup] is the type.
func WithActivity(activityType, template string, opts ...core.Option) Option {
	return func(l *locked) error { return l.rules.Add(activityType, template, source, opts...) }
}

// WithActivityFunc is [WithActivity] with a function that makes the name from the activity's arguments. Use
// key.Key's Name, of package core/key, for values that come from outside. If it returns an error that matches [core.ErrInvalid],
// the activity fails for good. Any other error is the activity's.
func WithActivityFunc(activityType string, name func(ctx context.Context, args []any) (string, error), opts ...core.Option) Option {
	return func(l *locked) error { return l.rules.AddFunc(activityType, name, opts...) }
}

// InterceptActivity implements interceptor.WorkerInterceptor.
func (l *locked) InterceptActivity(_ context.Context, next interceptor.ActivityInboundInterceptor) interceptor.ActivityInboundInterceptor {
	i := &inbound{rules: l.rules}
	i.Next = next
	return i
}

// inbound runs activities.
type inbound struct {
	interceptor.ActivityInboundInterceptorBase

	rules *adapter.Rules[[]any]
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (i *inbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	name := activity.GetInfo(ctx).ActivityType.Name
	r := i.rules.Of(name)
	if r == nil {
		return i.Next.ExecuteActivity(ctx, in)
	}
	var result any
	out := r.Run(ctx, in.Args, func(ctx context.Context) (err error) {
		result, err = i.Next.ExecuteActivity(ctx, in)
		return err
	}, core.WithOperation(name))
	if out.Reason == adapter.Done {
		return result, out.Own
	}
	return nil, refused(ctx, out)
}
