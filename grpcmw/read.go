package grpcmw

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/holdfast-go/holdfast/grpcmw/holdfastpb"
)

// read adds the rules that stand beside the methods. The error has all that is wrong with
// them, in the order of the methods' names.
func (b *builder) read() error {
	if !b.annotated {
		return nil
	}
	var errs []error
	for _, m := range methodsOf(b.files) {
		if b.rules[fullName(m)] != nil {
			continue // the server's own code stands nearer
		}
		if err := b.readMethod(m); err != nil {
			err = fmt.Errorf("option (%s): %w", holdfastpb.E_Lock.TypeDescriptor().FullName(), err)
			errs = append(errs, &ruleError{fullName(m), err})
		}
	}
	return errors.Join(errs...)
}

func (b *builder) readMethod(m protoreflect.MethodDescriptor) error {
	r, err := annotationOf(m)
	if r == nil || err != nil {
		return err
	}
	own, err := lockOptions(r)
	if err != nil {
		return err
	}
	k, err := templateKeyer(m, r.GetKey())
	if err != nil {
		return err
	}
	return b.add(m, k, slices.Concat(b.defaults, own))
}

// annotationOf returns the rule beside m, nil if it has none. It decodes the options again: a
// descriptor that was loaded without the extension has it among unknown fields, and one that was
// loaded with a dynamic type of it as a message of another Go type. Neither may leave a method
// unlocked. Only our extension is resolved, so that what is wrong with another one is not looked at.
func annotationOf(m protoreflect.MethodDescriptor) (*holdfastpb.LockRule, error) {
	raw, err := proto.MarshalOptions{AllowPartial: true}.Marshal(m.Options())
	if len(raw) == 0 || err != nil {
		return nil, err
	}
	ours := new(protoregistry.Types)
	if err := ours.RegisterExtension(holdfastpb.E_Lock); err != nil {
		return nil, err
	}
	var opts descriptorpb.MethodOptions
	if err := (proto.UnmarshalOptions{Resolver: ours}).Unmarshal(raw, &opts); err != nil {
		return nil, err
	}
	if !proto.HasExtension(&opts, holdfastpb.E_Lock) {
		return nil, nil //nolint:nilnil // documented: there is none
	}
	return proto.GetExtension(&opts, holdfastpb.E_Lock).(*holdfastpb.LockRule), nil
}

// methodsOf returns all methods, sorted. The files come first: looking into one while the
// registry is locked locks it again.
func methodsOf(registry *protoregistry.Files) []protoreflect.MethodDescriptor {
	var files []protoreflect.FileDescriptor
	registry.RangeFiles(func(f protoreflect.FileDescriptor) bool {
		files = append(files, f)
		return true
	})
	var methods []protoreflect.MethodDescriptor
	for _, f := range files {
		for i := range f.Services().Len() {
			of := f.Services().Get(i).Methods()
			for j := range of.Len() {
				methods = append(methods, of.Get(j))
			}
		}
	}
	slices.SortFunc(methods, func(a, b protoreflect.MethodDescriptor) int {
		return strings.Compare(string(a.FullName()), string(b.FullName()))
	})
	return methods
}
