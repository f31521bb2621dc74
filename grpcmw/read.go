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

	"github.com/holdfast-go/holdfast/core"
)

const methodOptions protoreflect.FullName = "google.protobuf.MethodOptions"

// reader makes rules of one option of methods.
type reader struct {
	option protoreflect.ExtensionType
	rule   func(value any) (key string, opts []core.Option, err error)
}

// read adds the rules that stand beside the methods. The error has all that is wrong with
// them, in the order of the methods' names.
func (b *builder) read() error {
	if len(b.readers) == 0 {
		return nil
	}
	var errs []error
	for _, m := range methodsOf(b.files) {
		if b.rules[fullName(m)] != nil || b.unlocked[fullName(m)] {
			continue // the server's own code stands nearer
		}
		if err := b.readMethod(m); err != nil {
			errs = append(errs, &ruleError{fullName(m), err})
		}
	}
	return errors.Join(errs...)
}

func (b *builder) readMethod(m protoreflect.MethodDescriptor) error {
	var by protoreflect.FullName
	for _, r := range b.readers {
		name := r.option.TypeDescriptor().FullName()
		locks, err := b.readOption(m, r)
		switch {
		case err != nil:
			return fmt.Errorf("option (%s): %w", name, err)
		case locks && by != "":
			return fmt.Errorf("options (%s) and (%s) both lock it", by, name)
		case locks:
			by = name
		}
	}
	return nil
}

func (b *builder) readOption(m protoreflect.MethodDescriptor, r reader) (locks bool, err error) {
	value, err := optionOf(m, r.option)
	if value == nil || err != nil {
		return false, err
	}
	key, opts, err := r.rule(value)
	if errors.Is(err, ErrNoLock) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	k, err := templateKeyer(m, key)
	if err != nil {
		return false, err
	}
	return true, b.add(m, k, opts)
}

// optionOf returns the value of m's option, nil if it has none. It decodes the options
// again: a descriptor that was loaded without the extension has it among unknown fields, and
// one that was loaded with a dynamic type of it as a message of another Go type. Neither may
// leave a method unlocked.
func optionOf(m protoreflect.MethodDescriptor, option protoreflect.ExtensionType) (any, error) {
	raw, err := proto.MarshalOptions{AllowPartial: true}.Marshal(m.Options())
	if len(raw) == 0 || err != nil {
		return nil, err
	}
	var opts descriptorpb.MethodOptions
	if err := (proto.UnmarshalOptions{Resolver: only{protoregistry.GlobalTypes, option}}).Unmarshal(raw, &opts); err != nil {
		return nil, err
	}
	if !proto.HasExtension(&opts, option) {
		return nil, nil //nolint:nilnil // documented: there is none
	}
	return proto.GetExtension(&opts, option), nil
}

// only resolves one extension of MethodOptions, so that what is wrong with another one is
// not looked at.
type only struct {
	*protoregistry.Types
	option protoreflect.ExtensionType
}

// FindExtensionByNumber is what decoding asks.
func (o only) FindExtensionByNumber(message protoreflect.FullName, number protoreflect.FieldNumber) (protoreflect.ExtensionType, error) {
	switch {
	case message != methodOptions:
		return o.Types.FindExtensionByNumber(message, number)
	case number == o.option.TypeDescriptor().Number():
		return o.option, nil
	default:
		return nil, protoregistry.NotFound
	}
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
