package temporalmw

import (
	"context"
	"fmt"
	"strings"

	"go.temporal.io/sdk/activity"
	"go.temporal.io/sdk/interceptor"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
)

// Option configures the interceptor.
type Option interface{ apply(*locked) error }

type optionFunc func(*locked) error

func (f optionFunc) apply(l *locked) error { return f(l) }

// locked are activities behind locks.
type locked struct {
	interceptor.WorkerInterceptorBase

	locks *core.Locker
	rules map[string]*adapter.Rule[[]any] // by activity type
}

// Interceptor is [New] for a program that cannot run without its rules: it panics where New returns an
// error.
func Interceptor(l *core.Locker, opts ...Option) interceptor.WorkerInterceptor {
	i, err := New(l, opts...)
	if err != nil {
		panic(err.Error())
	}
	return i
}

// New returns an interceptor for worker.Options. It returns an error that matches [core.ErrInvalid] for a nil Locker, a
// type that is given twice, a key that cannot be parsed, and options that cannot work.
func New(l *core.Locker, opts ...Option) (interceptor.WorkerInterceptor, error) {
	if _, err := l.With(); err != nil {
		return nil, fmt.Errorf("temporalmw: %w", err)
	}
	i := &locked{locks: l, rules: make(map[string]*adapter.Rule[[]any])}
	for _, o := range opts {
		if o == nil {
			return nil, fmt.Errorf("temporalmw: %w: nil option", core.ErrInvalid)
		}
		if err := o.apply(i); err != nil {
			return nil, fmt.Errorf("temporalmw: %w", err)
		}
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
	return optionFunc(func(l *locked) error {
		k, err := adapter.NewKey(template, sources)
		if err != nil {
			return fmt.Errorf("WithActivity(%q): %w", activityType, err)
		}
		return l.add(activityType, k, opts)
	})
}

// WithActivityFunc is [WithActivity] with a function that makes the name from the activity's arguments. Use
// key.Key's Name, of package core/key, for values that come from outside. If it returns an error that matches [core.ErrInvalid],
// the activity fails for good. Any other error is the activity's.
func WithActivityFunc(activityType string, name func(ctx context.Context, args []any) (string, error), opts ...core.Option) Option {
	return optionFunc(func(l *locked) error {
		k, err := adapter.KeyFunc(activityType, name)
		if err != nil {
			return fmt.Errorf("WithActivityFunc(%q): %w", activityType, err)
		}
		return l.add(activityType, k, opts)
	})
}

func (l *locked) add(activityType string, k adapter.Key[[]any], opts []core.Option) error {
	if strings.TrimSpace(activityType) == "" || l.rules[activityType] != nil {
		return fmt.Errorf("activity %q: %w: empty, or it has a rule already", activityType, core.ErrInvalid)
	}
	defaults := []core.Option{core.WithWait(0), core.WithDedupScope(activityType), core.WithOperation(activityType)}
	r, err := adapter.NewRule(l.locks, k, append(defaults, opts...)...)
	if err != nil {
		return fmt.Errorf("activity %q: %w", activityType, err)
	}
	l.rules[activityType] = r
	return nil
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

	rules map[string]*adapter.Rule[[]any]
}

// ExecuteActivity implements interceptor.ActivityInboundInterceptor.
func (i *inbound) ExecuteActivity(ctx context.Context, in *interceptor.ExecuteActivityInput) (any, error) {
	r := i.rules[activity.GetInfo(ctx).ActivityType.Name]
	if r == nil {
		return i.Next.ExecuteActivity(ctx, in)
	}
	var result any
	out := r.Run(ctx, in.Args, func(ctx context.Context) (err error) {
		result, err = i.Next.ExecuteActivity(ctx, in)
		return err
	})
	if out.Reason == adapter.Done {
		return result, out.Own
	}
	return nil, refused(ctx, out)
}
