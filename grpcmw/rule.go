package grpcmw

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
)

// Option configures the interceptors.
type Option func(*builder) error

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
	return func(b *builder) error {
		return b.list(fullMethod, func(m protoreflect.MethodDescriptor) error { return b.add(m, key, opts) })
	}
}

// WithMethodFunc is [WithMethod] with a function that returns the name to lock, for keys that no
// template can make. With key.Key of package core/key it makes the same names as other middleware:
//
//	order := key.MustParse("{tenant}:order:{id}")
//	name := func(ctx context.Context, req *shoppb.RefundRequest) (string, error) {
//		return order.Name(tenantOf(ctx), fmt.Sprint(req.GetOrder().GetId()))
//	}
//
// Req is the method's request type, which is checked, or an interface that it implements. If
// the client sends a stream of requests, a key function is an error.
//
// An error of the function refuses the request. If it is a gRPC status, or wraps one, the client gets that status unchanged.
// Any other error, one that says OK, and a name that core refuses, becomes InvalidArgument without its text. Observers
// see the full method instead of a template.
func WithMethodFunc[Req proto.Message](fullMethod string, key func(ctx context.Context, req Req) (string, error), opts ...core.Option) Option {
	return func(b *builder) error {
		return b.list(fullMethod, func(m protoreflect.MethodDescriptor) error {
			var zero Req
			if key == nil {
				return errors.New("key function: nil")
			}
			if any(zero) != nil { // Req is no interface type
				if takes := zero.ProtoReflect().Descriptor().FullName(); takes != m.Input().FullName() {
					return fmt.Errorf("the key function takes %s, the method %s", takes, m.Input().FullName())
				}
			}
			k := adapter.Must(adapter.KeyFunc(fullMethod, func(ctx context.Context, req any) (string, error) {
				msg, ok := req.(Req)
				if !ok {
					return "", errRequestType
				}
				return key(ctx, msg)
			}))
			return b.addKey(m, k, true, opts)
		})
	}
}

// WithLogger sets the logger that gets one line for each method whose requests fail through the
// program's fault: where WithDedup meets a name that the caller already holds, or a request is not of
// the method's type. For nil, the default, it is slog.Default() at that time. If it is given twice,
// the last one wins. To log what happens to leases, use core.WithLogger.
func WithLogger(log *slog.Logger) Option {
	return func(b *builder) error {
		b.log = log
		return nil
	}
}

func (b *builder) list(full string, add func(protoreflect.MethodDescriptor) error) error {
	m, err := findMethod(b.files, full)
	if b.rules[full] != nil {
		err = errors.New("listed twice")
	}
	if err == nil {
		err = add(m)
	}
	return wrong(full, err)
}

// wrong says which method's rule is wrong. A nil error is none.
func wrong(method string, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, core.ErrInvalid):
		return fmt.Errorf("method %q: %w", method, err)
	default:
		return fmt.Errorf("method %q: %w: %w", method, core.ErrInvalid, err)
	}
}

// rule is one method with its lock.
type rule struct {
	*adapter.Rule[any]

	method  string
	key     string
	request protoreflect.MessageType // for streams that a name needs the message of, else nil
	log     *slog.Logger             // nil for slog.Default()
	logged  sync.Once
}

func (b *builder) add(m protoreflect.MethodDescriptor, templates string, opts []core.Option) error {
	fromMessage := false
	k, err := adapter.NewKey(templates, func(name string) (adapter.Source[any], error) {
		fromMessage = fromMessage || !strings.Contains(name, ":")
		return source(m, name)
	})
	if err != nil {
		return err
	}
	return b.addKey(m, k, fromMessage, opts)
}

func (b *builder) addKey(m protoreflect.MethodDescriptor, k adapter.Key[any], fromMessage bool, opts []core.Option) error {
	if fromMessage && m.IsStreamingClient() {
		return errors.New("the client sends a stream of messages, which may name different things: " +
			"make the key of {metadata:x|text}, or lock where a message is handled")
	}
	full := fullName(m)
	defaults := []core.Option{core.WithWait(0), core.WithDedupScope(full), core.WithOperation(full)}
	locks, err := adapter.NewRule(b.locks, k, append(defaults, opts...)...)
	if err != nil {
		return err
	}
	r := &rule{Rule: locks, method: full, key: k.String()}
	if fromMessage {
		r.request = requestOf(m)
	}
	b.rules[full] = r
	return nil
}

// run runs work under the locks that req names, without any if there is no rule. It returns the interceptor's own answer, nil if the
// client gets what work has returned.
func (r *rule) run(ctx context.Context, req any, work func(context.Context) error) (a *answer, own error) {
	if r == nil {
		own = work(ctx)
		return instead(own), own
	}
	out := r.Run(ctx, req, work)
	if out.Reason == adapter.Done {
		return instead(out.Own), out.Own
	}
	if out.Reason == adapter.Misconfigured { // the program is at fault, and not the request
		r.logged.Do(func() {
			cmp.Or(r.log, slog.Default()).LogAttrs(ctx, slog.LevelError, "holdfast: requests of this method fail",
				slog.String("method", r.method), slog.String("key", r.key), slog.Any("error", out.Err))
		})
	}
	return refusalOf(out), nil
}

// requestOf is the Go type of a method's request: that of the generated code, if it is linked in.
func requestOf(m protoreflect.MethodDescriptor) protoreflect.MessageType {
	t, err := protoregistry.GlobalTypes.FindMessageByName(m.Input().FullName())
	if err != nil {
		return dynamicpb.NewMessageType(m.Input())
	}
	return t
}

// findMethod returns the descriptor of a method whose generated code is linked in.
func findMethod(files *protoregistry.Files, full string) (protoreflect.MethodDescriptor, error) {
	name := strings.Replace(strings.TrimPrefix(full, "/"), "/", ".", 1)
	d, _ := files.FindDescriptorByName(protoreflect.FullName(name)) // nil if there is none
	m, ok := d.(protoreflect.MethodDescriptor)
	if !ok || fullName(m) != full {
		return nil, errors.New(`unknown: no service of this program has it (the form is "/package.Service/Method")`)
	}
	return m, nil
}

func fullName(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}
