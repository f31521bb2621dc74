package grpcmw

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/holdfast-go/holdfast/core"
)

var errRequestType = errors.New("the request is not of the type that the method has")

// rule is one method with its lock.
type rule struct {
	method  string
	locks   *core.Locker             // with the method's options
	request protoreflect.MessageType // for streams
	keyer
	log    *slog.Logger // nil for slog.Default()
	logged sync.Once
}

// blame returns the answer given, and logs, once for each method, where the program is at fault and
// not the request.
func (r *rule) blame(ctx context.Context, given error) error {
	if a, ok := errors.AsType[*answer](given); ok && a.status.Code() == codes.Internal {
		r.logged.Do(func() {
			log := r.log
			if log == nil {
				log = slog.Default()
			}
			log.LogAttrs(ctx, slog.LevelError, "holdfast: requests of this method fail",
				slog.String("method", r.method), slog.String("key", r.template), slog.Any("error", a.cause))
		})
	}
	return given
}

var errFailed = errors.New("the handler did not succeed")

// do runs work under the locks that req names. It says whether the error is the door's own
// answer, and not what work has returned.
func (r *rule) do(ctx context.Context, req any, work func(context.Context) error) (answered bool, err error) {
	names, err := r.expand(ctx, req)
	if err != nil {
		return true, r.blame(ctx, unnamed(r.method, err))
	}
	ran := false
	var own error
	handle := func(ctx context.Context) error {
		ran = true
		if own = work(ctx); own != nil {
			return errFailed // a loss in own is that of another lease
		}
		return nil
	}
	if len(names) == 1 {
		err = r.locks.Do(ctx, names[0], handle)
	} else {
		err = r.locks.DoAll(ctx, names, handle)
	}
	if !ran {
		return true, r.blame(ctx, refused(r.method, err))
	}
	if l, ok := errors.AsType[*core.LostError](err); ok {
		return true, lost(errors.Join(own, l))
	}
	return false, own
}

func newRule(l *core.Locker, m protoreflect.MethodDescriptor, k keyer, opts []core.Option) (*rule, error) {
	if k.fromMessage && m.IsStreamingClient() {
		return nil, errors.New("the client sends a stream of messages, which may name different things: " +
			"make the key of {metadata:x|text}, or lock where a message is handled")
	}
	defaults := []core.Option{core.WithWait(0), core.WithTemplate(k.template), core.WithDedupScope(fullName(m)), core.WithOperation(fullName(m))}
	locks, err := l.With(append(defaults, opts...)...)
	if err != nil {
		return nil, err
	}
	return &rule{method: fullName(m), locks: locks, request: requestOf(m), keyer: k}, nil
}

// requestOf is the Go type of a method's request: that of the generated code, if it is linked in.
func requestOf(m protoreflect.MethodDescriptor) protoreflect.MessageType {
	t, err := protoregistry.GlobalTypes.FindMessageByName(m.Input().FullName())
	if err != nil || t.Descriptor() != m.Input() {
		return dynamicpb.NewMessageType(m.Input())
	}
	return t
}

// findMethod returns the descriptor of a method whose generated code is linked in.
func findMethod(files *protoregistry.Files, full string) (protoreflect.MethodDescriptor, error) {
	name := strings.Replace(strings.TrimPrefix(full, "/"), "/", ".", 1)
	d, err := files.FindDescriptorByName(protoreflect.FullName(name))
	m, ok := d.(protoreflect.MethodDescriptor)
	if err != nil || !ok || fullName(m) != full {
		return nil, errors.New(`unknown: no service of this program has it (the form is "/package.Service/Method")`)
	}
	return m, nil
}

func fullName(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}
