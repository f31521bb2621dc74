package grpcmw

import (
	"context"
	"errors"
	"fmt"
	"log/slog"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/holdfast-go/holdfast/core"
)

// Option configures the interceptors.
type Option interface{ apply(*builder) error }

type optionFunc func(*builder) error

func (f optionFunc) apply(b *builder) error { return f(b) }

// builder is what the options build.
type builder struct {
	locks *core.Locker
	files *protoregistry.Files
	rules map[string]*rule // by full method
	log   *slog.Logger

	annotated bool // rules of the .proto files are read
	defaults  []core.Option
}

// WithMethod locks a method, unary or streaming, under the name that the key template makes of each
// request. The package documentation lists the sources of a template.
//
// The full method is written as in generated code: "/shop.v1.Orders/Refund". These are errors when
// the interceptors are made: a method that no linked service has, a method that is listed twice, and
// a template that the method's request cannot fill. The rule replaces one that [WithAnnotations] would
// read for the same method. Methods without any rule pass through.
//
// A method that needs several names at once has several templates, with a space between them.
//
// The options apply to this rule. Its defaults are WithWait(0), which answers at once, and the full
// method as the scope of WithDedup. There is no limit for how long a handler may hold the lock. With
// dedup, a method is done when its handler has returned no error.
func WithMethod(fullMethod, key string, opts ...core.Option) Option {
	return optionFunc(func(b *builder) error {
		return b.list(fullMethod, opts, func(m protoreflect.MethodDescriptor) (keyer, error) {
			return templateKeyer(m, key)
		})
	})
}

// WithMethodFunc is [WithMethod] with a function that returns the name to lock, for keys that no
// template can make. With key.Key of package core/key it makes the same names as other middleware.
// Req is the method's request type, which is checked, or an interface that it implements. If
// the client sends a stream of requests, a key function is an error.
//
// An error of the function refuses the request. If it is a gRPC status, the client gets it unchanged.
// Any other error, and a name that core refuses, becomes InvalidArgument without its text. Observers
// see the full method instead of a template.
func WithMethodFunc[Req proto.Message](fullMethod string, key func(ctx context.Context, req Req) (string, error), opts ...core.Option) Option {
	return optionFunc(func(b *builder) error {
		return b.list(fullMethod, opts, func(m protoreflect.MethodDescriptor) (keyer, error) {
			return funcKeyer(m, key)
		})
	})
}

// WithLogger sets the logger that gets one line for each method whose requests fail through the
// program's fault: where WithDedup meets a name that the caller already holds, or a request is not of
// the method's type. For nil, the default, it is slog.Default() at that time. If it is given twice,
// the last one wins. To log what happens to leases, use core.WithLogger.
func WithLogger(log *slog.Logger) Option {
	return optionFunc(func(b *builder) error {
		b.log = log
		return nil
	})
}

func (b *builder) list(full string, opts []core.Option, keyerFor func(protoreflect.MethodDescriptor) (keyer, error)) error {
	if b.rules[full] != nil {
		return &ruleError{full, errors.New("listed twice")}
	}
	m, err := findMethod(b.files, full)
	if err != nil {
		return &ruleError{full, err}
	}
	k, err := keyerFor(m)
	if err != nil {
		return &ruleError{full, err}
	}
	if err := b.add(m, k, opts); err != nil {
		return &ruleError{full, err}
	}
	return nil
}

func (b *builder) add(m protoreflect.MethodDescriptor, k keyer, opts []core.Option) error {
	r, err := newRule(b.locks, m, k, opts)
	if err != nil {
		return err
	}
	b.rules[fullName(m)] = r
	return nil
}

// ruleError says which method's rule is wrong.
type ruleError struct {
	method string
	err    error
}

func (e *ruleError) Error() string { return fmt.Sprintf("grpcmw: method %q: %v", e.method, e.err) }

func (e *ruleError) Unwrap() error { return e.err }

// Is makes errors.Is(err, core.ErrInvalid) true.
func (e *ruleError) Is(target error) bool { return target == core.ErrInvalid }
