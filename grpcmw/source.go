package grpcmw

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/holdfast-go/holdfast/core/key"
)

// source is one {source} of a key.
type source struct {
	value value
	field bool // of the request
	text  bool // it has no type, so it needs a form
}

// value yields the value of a source, "" if it is missing. The message is nil for a key that has no
// request field.
type value func(ctx context.Context, req protoreflect.Message) (string, error)

func constant(v string) value {
	return func(context.Context, protoreflect.Message) (string, error) { return v, nil }
}

// newSource compiles the source that stands between the braces as text.
func newSource(m protoreflect.MethodDescriptor, text string) (s source, err error) {
	kind, name, ok := strings.Cut(text, ":")
	switch {
	case !ok:
		s.value, err = fieldSource(m.Input(), text)
		s.field = true
	case kind == "metadata":
		s.value, err = metadataSource(name)
		s.text = true
	case text == "grpc:method":
		s.value = constant(fullName(m))
	case text == "grpc:service":
		s.value = constant(string(m.Parent().FullName()))
	default:
		err = errors.New("no such source: there are request fields, metadata:x, grpc:method and grpc:service")
	}
	if err != nil {
		return source{}, fmt.Errorf("{%s}: %w", text, err)
	}
	return s, nil
}

func metadataSource(name string) (value, error) {
	wanted := strings.ToLower(name)
	other := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < '0' || r > '9') && !strings.ContainsRune("-_.", r)
	}
	switch {
	case strings.ContainsFunc(wanted, other):
		return nil, errors.New("not a metadata key: only letters, digits, '-', '_' and '.' are")
	case strings.HasSuffix(wanted, "-bin"):
		return nil, errors.New("binary metadata cannot name a lock")
	}
	return func(ctx context.Context, _ protoreflect.Message) (string, error) {
		values := metadata.ValueFromIncomingContext(ctx, wanted)
		if len(values) == 0 {
			return "", nil
		}
		for _, v := range values[1:] {
			if v != values[0] { // which one would the handler read?
				return "", key.ErrAmbiguous
			}
		}
		return values[0], nil
	}, nil
}

// fieldSource compiles a path of proto field names, checked against the descriptor.
func fieldSource(input protoreflect.MessageDescriptor, path string) (value, error) {
	var way []protoreflect.FieldDescriptor
	in := input
	for name := range strings.SplitSeq(path, ".") {
		if in == nil {
			return nil, fmt.Errorf("field %q is no message and has no field %q", way[len(way)-1].Name(), name)
		}
		fd, err := field(in, name)
		if err != nil {
			return nil, err
		}
		way = append(way, fd)
		in = fd.Message()
	}
	leaf := way[len(way)-1]
	format := formatOf(leaf.Kind())
	if format == nil {
		return nil, fmt.Errorf("field %q is of kind %s: only string, integer, bool and enum fields name a lock", leaf.Name(), leaf.Kind())
	}
	way = way[:len(way)-1]
	return func(_ context.Context, msg protoreflect.Message) (string, error) {
		for _, fd := range way {
			msg = msg.Get(fd).Message() // an empty one where it is not set
		}
		if !msg.Has(leaf) { // 0 and false too, where the field has no presence
			return "", nil
		}
		return format(msg.Get(leaf)), nil
	}, nil
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

// formatOf returns nil for kinds that name no lock. Enums are numbers: a name would differ
// between a server that knows the value and one that does not know it yet.
func formatOf(k protoreflect.Kind) func(protoreflect.Value) string {
	switch k {
	case protoreflect.StringKind:
		return protoreflect.Value.String
	case protoreflect.BoolKind:
		return func(v protoreflect.Value) string { return strconv.FormatBool(v.Bool()) }
	case protoreflect.EnumKind:
		return func(v protoreflect.Value) string { return strconv.Itoa(int(v.Enum())) }
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind,
		protoreflect.Int64Kind, protoreflect.Sint64Kind, protoreflect.Sfixed64Kind:
		return func(v protoreflect.Value) string { return strconv.FormatInt(v.Int(), 10) }
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind, protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		return func(v protoreflect.Value) string { return strconv.FormatUint(v.Uint(), 10) }
	default:
		return nil
	}
}
