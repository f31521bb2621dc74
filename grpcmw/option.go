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
	locks   *core.Locker
	files   *protoregistry.Files
	rules   map[string]*rule // by full method
	readers []reader         // of rules beside the methods
	log     *slog.Logger
}

// WithMethod locks a method, unary or streaming, under the name that the key template
// makes of each request; the package documentation lists the sources of a template.
//
// The full method is as in generated code: "/shop.v1.Orders/Refund". A method that no
// linked service has, one that is listed twice, and a template that the method's request
// cannot fill are errors when the interceptors are made. It stands in place of a rule that
// [WithAnnotations] or [WithMethodOption] would read beside the method. Methods without any
// rule pass through.
//
// The options are the rule's own. Before them stand WithWait(0), that is, to answer at
// once, and the full method as the scope of WithDedup; how long a handler may hold the lock
// has no bound. With dedup a method is done when its handler has returned no error.
func WithMethod(fullMethod, key string, opts ...core.Option) Option {
	return optionFunc(func(b *builder) error {
		return b.list(fullMethod, opts, func(m protoreflect.MethodDescriptor) (keyer, error) {
			return templateKeyer(m, key)
		})
	})
}

// WithMethodFunc is [WithMethod] with a function that returns the name to lock, for keys
// that no template can make; key.Key makes names that agree with the other doors'. Req is
// the method's request type, which is checked, or an interface that it implements. Of a
// stream, the function sees the first message.
//
// An error of the function refuses the request: one that is a gRPC status goes to the
// client as it is, any other, and a name that core does not take, as InvalidArgument without
// its text. Observers see the full
// method instead of a template.
func WithMethodFunc[Req proto.Message](fullMethod string, key func(ctx context.Context, req Req) (string, error), opts ...core.Option) Option {
	return optionFunc(func(b *builder) error {
		return b.list(fullMethod, opts, func(m protoreflect.MethodDescriptor) (keyer, error) {
			return funcKeyer(m, key)
		})
	})
}

// WithLogger sets who is told, once for each method, that requests fail through the program's
// fault: where WithDedup meets a name that the caller holds already, or a request is not of the
// method's type. The default, also chosen by nil, is slog.Default() at that time; a later repeat
// wins. What happens to leases is for core.WithLogger.
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
