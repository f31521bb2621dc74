package grpcmw

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/key"
)

var errRequestType = errors.New("the request is not of the type that the method has")

// rule is one method with its lock.
type rule struct {
	method string
	locks  *core.Locker // with the method's options
	keyer
	log    *slog.Logger // nil for slog.Default()
	logged sync.Once
}

// keyer makes the name of a request's lock.
type keyer struct {
	template    string // for observers
	fromMessage bool   // the name needs the request, not only its context
	expand      func(ctx context.Context, req any) (string, error)
}

// name returns what to lock, or the error to answer with.
func (r *rule) name(ctx context.Context, req any) (string, error) {
	name, err := r.expand(ctx, req)
	if err != nil {
		return "", r.blame(ctx, unnamed(err))
	}
	return name, nil
}

// refused is the error to answer with where core gave no lease.
func (r *rule) refused(ctx context.Context, err error) error {
	return r.blame(ctx, refused(err))
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

// do runs work under the lock that req names. It says whether the error is the door's own
// answer, and not what work has returned.
func (r *rule) do(ctx context.Context, req any, work func(context.Context, *core.Lease) error) (answered bool, err error) {
	name, err := r.name(ctx, req)
	if err != nil {
		return true, err
	}
	var lease *core.Lease // nil until work runs
	err = r.locks.Do(ctx, name, func(ctx context.Context) error {
		lease, _ = core.FromContext(ctx)
		return work(ctx, lease)
	})
	switch {
	case lease == nil:
		return true, r.refused(ctx, err)
	case err != nil && wasLost(lease):
		return true, lost(err)
	default:
		return false, err
	}
}

// wasLost says whether x, which has ended, had not lasted until then. It is about this
// very lease: the error of the work can be the loss of another one.
func wasLost(x *core.Lease) bool {
	return errors.Is(x.Err(), core.ErrLost)
}

func newRule(l *core.Locker, m protoreflect.MethodDescriptor, k keyer, opts []core.Option) (*rule, error) {
	defaults := []core.Option{core.WithWait(0), core.WithTemplate(k.template), core.WithDedupScope(fullName(m))}
	locks, err := l.With(append(defaults, opts...)...)
	if err != nil {
		return nil, err
	}
	return &rule{method: fullName(m), locks: locks, keyer: k}, nil
}

func templateKeyer(m protoreflect.MethodDescriptor, template string) (keyer, error) {
	parsed, err := key.Parse(template)
	if err != nil {
		return keyer{}, err
	}
	var sources []source
	var fromMessage bool
	for _, text := range parsed.Sources() {
		s, bare, err := newSource(m, text)
		if err != nil {
			return keyer{}, fmt.Errorf("key %q: %w", template, err)
		}
		sources = append(sources, s)
		fromMessage = fromMessage || bare
	}
	input := m.Input()
	return keyer{template, fromMessage, func(ctx context.Context, req any) (string, error) {
		var msg protoreflect.Message
		if fromMessage {
			if msg = reflectAs(req, input); msg == nil {
				return "", errRequestType
			}
		}
		return expand(ctx, parsed, sources, msg)
	}}, nil
}

func expand(ctx context.Context, tmpl *key.Key, sources []source, msg protoreflect.Message) (string, error) {
	var few [4]string // keeps the usual key off the heap
	values := few[:0]
	for _, s := range sources {
		v, err := s(ctx, msg)
		if err != nil {
			return "", err
		}
		values = append(values, v)
	}
	return tmpl.Name(values...)
}

// reflectAs returns req for reflection, nil if it is no message of type d: field
// descriptors of one type make every other type panic.
func reflectAs(req any, d protoreflect.MessageDescriptor) protoreflect.Message {
	m, ok := req.(proto.Message)
	if !ok {
		return nil
	}
	if msg := m.ProtoReflect(); msg.Descriptor() == d {
		return msg
	}
	return nil
}

func funcKeyer[Req proto.Message](m protoreflect.MethodDescriptor, nameOf func(context.Context, Req) (string, error)) (keyer, error) {
	if nameOf == nil {
		return keyer{}, errors.New("key function: nil")
	}
	var zero Req
	if any(zero) != nil { // Req is no interface type
		if takes := zero.ProtoReflect().Descriptor().FullName(); takes != m.Input().FullName() {
			return keyer{}, fmt.Errorf("the key function takes %s, the method %s", takes, m.Input().FullName())
		}
	}
	return keyer{fullName(m), true, func(ctx context.Context, req any) (string, error) {
		msg, ok := req.(Req)
		if !ok {
			return "", errRequestType
		}
		name, err := nameOf(ctx, msg)
		if err == nil { // here, since what core refuses later is not the request's fault
			err = key.CheckName(name)
		}
		return name, err
	}}, nil
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
