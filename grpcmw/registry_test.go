package grpcmw_test

import (
	"testing"

	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/holdfast-go/holdfast/grpcmw/holdfastpb"
)

// private returns a registry with the service private.v1.Things, whose methods, by name, have
// these options. Rules that do not work can stand there: in the program's own registry they
// would fail every other test.
func private(t testing.TB, methods map[string]*descriptorpb.MethodOptions) *protoregistry.Files {
	t.Helper()
	described := new(descriptorpb.FileDescriptorProto)
	err := prototext.Unmarshal([]byte(`name: "private.proto" package: "private.v1" syntax: "proto3" service { name: "Things" }
		message_type { name: "Thing"
			field { name: "id" number: 1 type: TYPE_INT64 label: LABEL_OPTIONAL }
			field { name: "price" number: 2 type: TYPE_DOUBLE label: LABEL_OPTIONAL } }`), described)
	if err != nil {
		t.Fatal(err)
	}
	service := described.GetService()[0]
	for name, opts := range methods {
		service.Method = append(service.Method, &descriptorpb.MethodDescriptorProto{
			Name: new(name), InputType: new(".private.v1.Thing"), OutputType: new(".private.v1.Thing"), Options: opts,
		})
	}
	file, err := protodesc.NewFile(described, nil)
	if err != nil {
		t.Fatal(err)
	}
	files := new(protoregistry.Files)
	if err := files.RegisterFile(file); err != nil {
		t.Fatal(err)
	}
	return files
}

// touch is the method of private registries that have but one.
const touch = "/private.v1.Things/Touch"

// annotated is a private registry whose method Touch is locked by r.
func annotated(t testing.TB, r *holdfastpb.LockRule) *protoregistry.Files {
	t.Helper()
	return private(t, map[string]*descriptorpb.MethodOptions{"Touch": lockedAs(r)})
}

func lockedAs(r *holdfastpb.LockRule) *descriptorpb.MethodOptions {
	opts := new(descriptorpb.MethodOptions)
	proto.SetExtension(opts, holdfastpb.E_Lock, r)
	return opts
}

// thing is the request of a private registry's methods.
func thing(t testing.TB, files *protoregistry.Files, id int64) proto.Message {
	t.Helper()
	d, err := files.FindDescriptorByName("private.v1.Thing")
	if err != nil {
		t.Fatal(err)
	}
	m := dynamicpb.NewMessage(d.(protoreflect.MessageDescriptor))
	m.Set(m.Descriptor().Fields().ByName("id"), protoreflect.ValueOfInt64(id))
	return m
}
