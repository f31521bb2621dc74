package grpcmw_test

import (
	"cmp"
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/holdfast-go/holdfast/grpcmw/holdfastpb"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// things is a file with a service that has no methods yet, and a message that has no fields.
const things = `name: "private.proto" package: "private.v1" syntax: "proto3" service { name: "Things" }
	enum_type { name: "Channel" value { name: "NONE" number: 0 } value { name: "PHONE" number: 2 } }
	message_type { name: "Thing" oneof_decl { name: "receiver" } oneof_decl { name: "_revision" } oneof_decl { name: "_alias" }
		nested_type { name: "PartsEntry" options { map_entry: true }
			field { name: "key" number: 1 type: TYPE_STRING label: LABEL_OPTIONAL }
			field { name: "value" number: 2 type: TYPE_INT64 label: LABEL_OPTIONAL } } }`

// thingFields are the fields of a Thing, of every kind.
var thingFields = []string{
	`name: "id" type: TYPE_INT64`,
	`name: "number" type: TYPE_UINT64`,
	`name: "line_item" type: TYPE_INT64`,
	`name: "name" type: TYPE_STRING`,
	`name: "urgent" type: TYPE_BOOL`,
	`name: "channel" type: TYPE_ENUM type_name: ".private.v1.Channel"`,
	`name: "parent" type: TYPE_MESSAGE type_name: ".private.v1.Thing"`,
	`name: "account" type: TYPE_INT64 oneof_index: 0`,
	`name: "revision" type: TYPE_INT64 oneof_index: 1 proto3_optional: true`,
	`name: "alias" type: TYPE_STRING oneof_index: 2 proto3_optional: true`,
	`name: "digest" type: TYPE_BYTES`,
	`name: "price" type: TYPE_DOUBLE`,
	`name: "weight" type: TYPE_FLOAT`,
	`name: "tags" type: TYPE_STRING label: LABEL_REPEATED`,
	`name: "related" type: TYPE_MESSAGE type_name: ".private.v1.Thing" label: LABEL_REPEATED`,
	`name: "parts" type: TYPE_MESSAGE type_name: ".private.v1.Thing.PartsEntry" label: LABEL_REPEATED`,
}

// private returns a registry with the service private.v1.Things, whose methods, by name, have
// these options. Rules that do not work can stand there: in the program's own registry they
// would fail every other test.
func private(t testing.TB, methods map[string]*descriptorpb.MethodOptions) *protoregistry.Files {
	t.Helper()
	described := new(descriptorpb.FileDescriptorProto)
	locktest.OK(t, prototext.Unmarshal([]byte(things), described))
	message, service := described.GetMessageType()[0], described.GetService()[0]
	for i, text := range thingFields {
		f := new(descriptorpb.FieldDescriptorProto)
		locktest.OK(t, prototext.Unmarshal([]byte(text), f))
		f.Number, f.Label = new(int32(i+1)), cmp.Or(f.Label, descriptorpb.FieldDescriptorProto_LABEL_OPTIONAL.Enum())
		message.Field = append(message.Field, f)
	}
	for name, opts := range methods {
		service.Method = append(service.Method, &descriptorpb.MethodDescriptorProto{
			Name: new(name), InputType: new(".private.v1.Thing"), OutputType: new(".private.v1.Thing"), Options: opts,
		})
	}
	file, err := protodesc.NewFile(described, nil)
	locktest.OK(t, err)
	files := new(protoregistry.Files)
	locktest.OK(t, files.RegisterFile(file))
	return files
}

// touch is the method of private registries that have but one.
const touch = "/private.v1.Things/Touch"

// annotated is a private registry whose method Touch is locked by r, nil for no annotation.
func annotated(t testing.TB, r *holdfastpb.LockRule) *protoregistry.Files {
	t.Helper()
	return private(t, map[string]*descriptorpb.MethodOptions{"Touch": lockedAs(r)})
}

func lockedAs(r *holdfastpb.LockRule) *descriptorpb.MethodOptions {
	opts := new(descriptorpb.MethodOptions)
	if r != nil {
		proto.SetExtension(opts, holdfastpb.E_Lock, r)
	}
	return opts
}

// thing is a request of a private registry's methods, from its text.
func thing(t testing.TB, files *protoregistry.Files, text string) proto.Message {
	t.Helper()
	d, err := files.FindDescriptorByName("private.v1.Thing")
	locktest.OK(t, err)
	m := dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))
	locktest.OK(t, prototext.Unmarshal([]byte(text), m))
	return m
}
