package grpcmw

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw/holdfastpb"
)

// WithAnnotations locks every method that has the option (holdfast.v1.lock), of all services whose
// generated code is linked in when the interceptors are made:
//
//	import "holdfast/v1/lock.proto";
//
//	service Orders {
//	  rpc Refund(RefundRequest) returns (RefundReply) {
//	    option (holdfast.v1.lock) = {key: "order:{order.id}", wait: "2s"};
//	  }
//	}
//
// Package holdfastpb says how to import that file. Its LockRule lists the fields of a rule. A rule
// works like [WithMethod] with the same values. A rule that cannot work is an error that names the
// method, even if this program only calls the service. By default no annotations are read. A method
// that [WithMethod] or [WithMethodFunc] lists keeps that rule, in any order of the options, and its
// annotation is ignored.
//
// The options are defaults for the annotated methods: what a rule says itself wins. Giving
// WithAnnotations twice is an error.
func WithAnnotations(opts ...core.Option) Option {
	return func(b *builder) error {
		if b.annotated {
			return fmt.Errorf("%w: WithAnnotations is given twice", core.ErrInvalid)
		}
		b.annotated, b.defaults = true, opts
		return nil
	}
}

// read adds the rules that stand beside the methods.
func (b *builder) read() error {
	if !b.annotated {
		return nil
	}
	for _, m := range methodsOf(b.files) {
		if b.rules[fullName(m)] != nil {
			continue // the server's own code stands nearer
		}
		if err := b.readMethod(m); err != nil {
			return wrong(fullName(m), fmt.Errorf("option (%s): %w", holdfastpb.E_Lock.TypeDescriptor().FullName(), err))
		}
	}
	return nil
}

func (b *builder) readMethod(m protoreflect.MethodDescriptor) error {
	r, err := annotationOf(m)
	if r == nil {
		return err
	}
	own, err := lockOptions(r)
	if err != nil {
		return err
	}
	return b.add(m, r.GetKey(), slices.Concat(b.defaults, own))
}

// annotationOf returns the rule beside m, nil if it has none, or on an error. It decodes the options again: a
// descriptor that was loaded without the extension has it among unknown fields, and one that was
// loaded with a dynamic type of it as a message of another Go type. Neither may leave a method
// unlocked.
func annotationOf(m protoreflect.MethodDescriptor) (*holdfastpb.LockRule, error) {
	raw, err := proto.MarshalOptions{AllowPartial: true}.Marshal(m.Options())
	if err != nil {
		return nil, err
	}
	var opts descriptorpb.MethodOptions
	if err := (proto.UnmarshalOptions{AllowPartial: true}).Unmarshal(raw, &opts); err != nil {
		return nil, err
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

// lockOptions returns what r says beside its key.
func lockOptions(r *holdfastpb.LockRule) ([]core.Option, error) {
	if len(r.ProtoReflect().GetUnknown()) > 0 {
		return nil, errors.New("it has fields that this version of Holdfast does not know")
	}
	switch {
	case r.GetKey() == "":
		return nil, errors.New("key: missing")
	case r.GetShared() && r.Limit != nil:
		return nil, errors.New("shared and limit: only one of them")
	}
	var opts []core.Option
	for _, f := range []struct {
		name   string
		text   *string
		option func(time.Duration) core.Option
	}{
		{"wait", r.Wait, core.WithWait},
		{"ttl", r.Ttl, core.WithTTL},
		{"max_hold", r.MaxHold, core.WithMaxHold},
		{"dedup", r.Dedup, core.WithDedup},
		{"min_hold", r.MinHold, core.WithMinHold},
	} {
		if f.text == nil {
			continue
		}
		d, err := time.ParseDuration(*f.text)
		if f.name == "wait" && *f.text == "forever" {
			d, err = core.WaitForever, nil
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		opts = append(opts, f.option(d))
	}
	kind, err := kindOptions(r)
	return append(opts, kind...), err
}

// kindOptions returns what r says of the kind of lock.
func kindOptions(r *holdfastpb.LockRule) (opts []core.Option, err error) {
	if r.DedupScope != nil {
		opts = append(opts, core.WithDedupScope(*r.DedupScope))
	}
	if r.GetShared() {
		opts = append(opts, core.WithShared())
	}
	if r.Limit != nil {
		opts = append(opts, core.WithLimit(int(*r.Limit)))
	}
	switch r.GetOnUnavailable() {
	case holdfastpb.LockRule_ON_UNAVAILABLE_UNSPECIFIED:
	case holdfastpb.LockRule_FAIL_CLOSED:
		opts = append(opts, core.OnUnavailable(core.FailClosed))
	case holdfastpb.LockRule_LOCAL_ONLY:
		opts = append(opts, core.OnUnavailable(core.LocalOnly))
	default:
		return nil, errors.New("on_unavailable: a value that this version of Holdfast does not know")
	}
	return opts, nil
}
