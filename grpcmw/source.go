package grpcmw

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-go/holdfast/core/adapter"
)

// errRequestType is the program's fault: another interceptor has changed the request, or the server's code.
var errRequestType = fmt.Errorf("%w: the request is not of the type that the method has", adapter.ErrMisconfigured)

// source compiles the source that stands between the braces as name.
func source(m protoreflect.MethodDescriptor, name string) (adapter.Source[any], error) {
	kind, meta, ok := strings.Cut(name, ":")
	switch {
	case !ok:
		return fieldSource(m.Input(), name)
	case kind == "metadata":
		return metadataSource(meta)
	case name == "grpc:method":
		return constant(fullName(m)), nil
	case name == "grpc:service":
		return constant(string(m.Parent().FullName())), nil
	default:
		return adapter.Source[any]{}, errors.New("no such source: there are {field.path}, {metadata:x|form}, {grpc:method} and {grpc:service}")
	}
}

func constant(v string) adapter.Source[any] {
	return adapter.Typed(func(context.Context, any) (string, error) { return v, nil })
}

func metadataSource(name string) (adapter.Source[any], error) {
	wanted := strings.ToLower(name)
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
	}
	switch {
	case strings.ContainsFunc(wanted, other):
		return adapter.Source[any]{}, errors.New("not a metadata key: only letters, digits, '-', '_' and '.' are")
	case strings.HasSuffix(wanted, "-bin"):
		return adapter.Source[any]{}, errors.New("binary metadata cannot name a lock")
	}
	return adapter.Text(func(ctx context.Context, _ any) (string, error) {
		return adapter.Only(metadata.ValueFromIncomingContext(ctx, wanted))
	}), nil
}

// fieldSource compiles a path of proto field names, checked against the descriptor.
func fieldSource(input protoreflect.MessageDescriptor, path string) (adapter.Source[any], error) {
	none := adapter.Source[any]{}
	var way []protoreflect.FieldDescriptor
	in := input
	for name := range strings.SplitSeq(path, ".") {
		if in == nil {
			return none, fmt.Errorf("field %q is no message and has no field %q", way[len(way)-1].Name(), name)
		}
		fd, err := field(in, name)
		if err != nil {
			return none, err
		}
		way = append(way, fd)
		in = fd.Message()
	}
	leaf := way[len(way)-1]
	switch leaf.Kind() {
	case protoreflect.BytesKind, protoreflect.FloatKind, protoreflect.DoubleKind, protoreflect.MessageKind, protoreflect.GroupKind:
		return none, fmt.Errorf("field %q is of kind %s: only string, integer, bool and enum fields name a lock", leaf.Name(), leaf.Kind())
	default:
	}
	way = way[:len(way)-1]
	return adapter.Typed(func(_ context.Context, req any) (string, error) {
		m, ok := req.(proto.Message)
		if !ok || m.ProtoReflect().Descriptor() != input { // descriptors of one type make every other type panic
			return "", errRequestType
		}
		msg := m.ProtoReflect()
		for _, fd := range way {
			msg = msg.Get(fd).Message() // an empty one where it is not set
		}
		if !msg.Has(leaf) { // 0 and false too, where the field has no presence
			return "", nil
		}
		return msg.Get(leaf).String(), nil // of an enum its number: a server may not know the value yet
	}), nil
}

func field(in protoreflect.MessageDescriptor, name string) (protoreflect.FieldDescriptor, error) {
	fd := in.Fields().ByName(protoreflect.Name(name))
	if fd == nil {
		if fd = in.Fields().ByJSONName(name); fd != nil {
			return nil, fmt.Errorf("%s has no field %q: use the proto name, %q", in.FullName(), name, fd.Name())
		}
		return nil, fmt.Errorf("%s has no field %q", in.FullName(), name)
	}
	if fd.Cardinality() == protoreflect.Repeated {
		return nil, fmt.Errorf("field %q is a list or a map", name)
	}
	return fd, nil
}
