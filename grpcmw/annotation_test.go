package grpcmw_test

import (
	"cmp"
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/prototext"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/holdfastpb"
	"github.com/holdfast-go/holdfast/grpcmw/internal/rpctest"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// annotatedGuard returns a function that calls a method locked by r, beside Lockers of the
// same store.
func annotatedGuard(t *testing.T, d driver.Driver, r *holdfastpb.LockRule, defaults ...core.Option) (call func(context.Context, grpc.UnaryHandler) error) {
	t.Helper()
	files := annotated(t, r)
	guard, err := grpcmw.NewFrom(files, locktest.Locker(t, d), grpcmw.WithAnnotations(defaults...))
	locktest.OK(t, err)
	return func(ctx context.Context, handler grpc.UnaryHandler) error {
		_, err := guard.Unary()(ctx, thing(t, files, "id: 42"), &grpc.UnaryServerInfo{FullMethod: touch}, handler)
		return err
	}
}

func nothing(context.Context, any) (any, error) { return struct{}{}, nil }

// What an annotation says is what the same options of core say.
func TestAnAnnotationIsItsOptions(t *testing.T) {
	t.Parallel()
	ttl30 := []core.Option{core.WithTTL(30 * time.Second)}
	for name, row := range map[string]struct {
		rule     *holdfastpb.LockRule
		defaults []core.Option
		want     []core.Option
	}{
		"nothing":              {&holdfastpb.LockRule{}, nil, nil},
		"a default":            {&holdfastpb.LockRule{}, ttl30, ttl30},
		"ttl":                  {&holdfastpb.LockRule{Ttl: new("20s")}, nil, []core.Option{core.WithTTL(20 * time.Second)}},
		"ttl, over a default":  {&holdfastpb.LockRule{Ttl: new("20s")}, ttl30, []core.Option{core.WithTTL(20 * time.Second)}},
		"shared":               {&holdfastpb.LockRule{Shared: true}, nil, []core.Option{core.WithShared()}},
		"limit":                {&holdfastpb.LockRule{Limit: new(int32(2))}, nil, []core.Option{core.WithLimit(2)}},
		"min_hold":             {&holdfastpb.LockRule{MinHold: new("1m")}, nil, []core.Option{core.WithMinHold(time.Minute)}},
		"dedup":                {&holdfastpb.LockRule{Dedup: new("24h")}, nil, []core.Option{core.WithDedup(24 * time.Hour)}},
		"dedup off":            {&holdfastpb.LockRule{Dedup: new("0")}, []core.Option{core.WithDedup(time.Hour)}, nil},
		"dedup_scope":          {&holdfastpb.LockRule{Dedup: new("24h"), DedupScope: new("x")}, nil, []core.Option{core.WithDedup(24 * time.Hour), core.WithDedupScope("x")}},
		"an empty dedup_scope": {&holdfastpb.LockRule{Dedup: new("24h"), DedupScope: new("")}, nil, []core.Option{core.WithDedup(24 * time.Hour), core.WithDedupScope("")}},
	} {
		row.rule.Key = "thing:{id}"
		claim := func(do func(driver.Driver) error) driver.Claim {
			store := locktest.NewBackend()
			locktest.OK(t, do(store))
			c := <-store.Granted
			c.Token, c.Label, c.Heard, c.Fences = "", "", nil, 0
			return c
		}
		got := claim(func(d driver.Driver) error {
			return annotatedGuard(t, d, row.rule, row.defaults...)(t.Context(), nothing)
		})
		opts := append([]core.Option{core.WithWait(0), core.WithDedupScope(touch)}, row.want...)
		want := claim(func(d driver.Driver) error {
			return locktest.Locker(t, d).Do(t.Context(), "thing:42", func(context.Context) error { return nil }, opts...)
		})
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v, want %+v", name, got, want)
		}
	}
}

// They are in no claim.
func TestTheWaitAndTheMaxHoldOfAnAnnotation(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		rule     *holdfastpb.LockRule
		defaults []core.Option
		reason   string
		after    time.Duration
	}{
		"no wait":                 {&holdfastpb.LockRule{}, nil, grpcmw.ReasonHeld, 0},
		"90 s":                    {&holdfastpb.LockRule{Wait: new("1m30s")}, nil, grpcmw.ReasonHeld, 90 * time.Second},
		"forever":                 {&holdfastpb.LockRule{Wait: new("forever")}, nil, grpcmw.ReasonHeld, time.Hour}, // until the request's context ends
		"its own, over a default": {&holdfastpb.LockRule{Wait: new("2s")}, []core.Option{core.WithWait(5 * time.Second)}, grpcmw.ReasonHeld, 2 * time.Second},
		"max_hold":                {&holdfastpb.LockRule{MaxHold: new("1m")}, nil, grpcmw.ReasonLost, time.Minute},
	} {
		synctest.Test(t, func(t *testing.T) {
			store := memlock.New()
			if row.reason == grpcmw.ReasonHeld {
				locktest.Hold(t, locktest.Locker(t, store), "thing:42")
			}
			row.rule.Key = "thing:{id}"
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			began := time.Now()
			err := annotatedGuard(t, store, row.rule, row.defaults...)(ctx, func(ctx context.Context, _ any) (any, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
			rpctest.WantStatus(t, err, codes.Aborted, row.reason)
			if after := time.Since(began); after != row.after {
				t.Errorf("%s: after %s, want %s", name, after, row.after)
			}
		})
	}
}

func TestAnnotationThatCannotWorkIsAConstructionErrorThatNamesItsMethod(t *testing.T) {
	t.Parallel()
	key := func(key string) *descriptorpb.MethodOptions { return lockedAs(&holdfastpb.LockRule{Key: key}) }
	for name, row := range map[string]struct {
		opts *descriptorpb.MethodOptions
		says string
	}{
		"no key":                {lockedAs(&holdfastpb.LockRule{Wait: new("2s")}), "key: missing"},
		"nothing at all":        {lockedAs(&holdfastpb.LockRule{}), "key: missing"},
		"broken key":            {key("thing:{"), "brace"},
		"wait in words":         {lockedAs(&holdfastpb.LockRule{Key: "a", Wait: new("soon")}), `wait: time: invalid duration "soon"`},
		"negative wait":         {lockedAs(&holdfastpb.LockRule{Key: "a", Wait: new("-1s")}), "WithWait(-1s)"},
		"endless ttl":           {lockedAs(&holdfastpb.LockRule{Key: "a", Ttl: new("forever")}), "ttl: time: invalid duration"},
		"shared and limit":      {lockedAs(&holdfastpb.LockRule{Key: "a", Shared: true, Limit: new(int32(2))}), "shared and limit"},
		"unknown policy":        {lockedAs(&holdfastpb.LockRule{Key: "a", OnUnavailable: 9}), "on_unavailable"},
		"a field of the future": {future(t), "does not know"},
		"broken bytes":          {unknown(protowire.AppendVarint(nil, 85625<<3|2), 200), "option (holdfast.v1.lock)"},
	} {
		files := private(t, map[string]*descriptorpb.MethodOptions{"Touch": row.opts, "Good": key("thing:{id}"), "Plain": nil})
		guard, err := grpcmw.NewFrom(files, locktest.Memory(t), grpcmw.WithAnnotations())
		if guard != nil || !errors.Is(err, core.ErrInvalid) {
			t.Fatalf("%s: %v, %v", name, guard, err)
		}
		for _, says := range []string{"grpcmw: ", touch, "(holdfast.v1.lock)", row.says} {
			if !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %q does not say %q", name, err, says)
			}
		}
		if strings.Contains(err.Error(), "Good") {
			t.Errorf("%s: %q speaks of a rule that works", name, err)
		}
		// The server's own rule stands in place of the one that cannot work.
		guard, err = grpcmw.NewFrom(files, locktest.Memory(t), grpcmw.WithAnnotations(), grpcmw.WithMethod(touch, "a"))
		if err != nil || len(guard.Methods()) != 2 {
			t.Errorf("%s, with a rule of the server's own: %v", name, err)
		}
	}
}

// future is a rule with a field that this version has not.
func future(t *testing.T) *descriptorpb.MethodOptions {
	t.Helper()
	r := &holdfastpb.LockRule{Key: "a"}
	r.ProtoReflect().SetUnknown(protowire.AppendVarint(protowire.AppendTag(nil, 99, protowire.VarintType), 1))
	return lockedAs(r)
}

// unknown are options with fields that nobody has decoded.
func unknown(raw []byte, more ...byte) *descriptorpb.MethodOptions {
	opts := new(descriptorpb.MethodOptions)
	opts.ProtoReflect().SetUnknown(append(raw, more...))
	return opts
}

// A descriptor that was loaded by other means than generated code may have the option in
// another form.
func TestAnnotationInAnyFormLocks(t *testing.T) {
	t.Parallel()
	raw, err := proto.Marshal(lockedAs(&holdfastpb.LockRule{Key: "thing:{id}"}))
	locktest.OK(t, err)
	dynamic, types := new(descriptorpb.MethodOptions), new(protoregistry.Types)
	locktest.OK(t, types.RegisterExtension(dynamicpb.NewExtensionType(holdfastpb.E_Lock.TypeDescriptor().Descriptor())))
	locktest.OK(t, (proto.UnmarshalOptions{Resolver: types}).Unmarshal(raw, dynamic))
	for name, opts := range map[string]*descriptorpb.MethodOptions{
		"not decoded": unknown(raw), "decoded as a dynamic message": dynamic,
	} {
		files := private(t, map[string]*descriptorpb.MethodOptions{"Touch": opts})
		guard, err := grpcmw.NewFrom(files, locktest.Memory(t), grpcmw.WithAnnotations())
		if err != nil || len(guard.Methods()) != 1 {
			t.Errorf("%s: %v, %v", name, guard, err)
		}
	}
}

func TestAnAnnotationSaysWhatBecomesOfAnOutage(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	store.SetDown(true)
	call := annotatedGuard(t, fallback.New(store), &holdfastpb.LockRule{Key: "thing:{id}", OnUnavailable: holdfastpb.LockRule_LOCAL_ONLY})
	locktest.OK(t, call(t.Context(), nothing))
	closed := annotatedGuard(t, fallback.New(store), &holdfastpb.LockRule{Key: "thing:{id}", OnUnavailable: holdfastpb.LockRule_FAIL_CLOSED},
		core.OnUnavailable(core.LocalOnly))
	rpctest.WantStatus(t, closed(t.Context(), nothing), codes.Unavailable, grpcmw.ReasonUnavailable)
}

func TestAnnotationsAreReadOnRequestAndAServersOwnRuleStandsInTheirPlace(t *testing.T) {
	t.Parallel()
	listed := grpcmw.WithMethod(refund, "mine:{order.id}")
	byFunc := grpcmw.WithMethodFunc(refund, func(context.Context, *testpb.RefundRequest) (string, error) { return "mine:42", nil })
	for name, row := range map[string]struct {
		opts []grpcmw.Option
		want string
	}{
		"listed before":        {[]grpcmw.Option{listed, grpcmw.WithAnnotations()}, "mine:42"},
		"listed behind":        {[]grpcmw.Option{grpcmw.WithAnnotations(), listed}, "mine:42"},
		"with a key function":  {[]grpcmw.Option{grpcmw.WithAnnotations(), byFunc}, "mine:42"},
		"the annotation alone": {[]grpcmw.Option{grpcmw.WithAnnotations()}, "order:42"},
		"not requested":        {nil, "none"},
	} {
		guard, err := grpcmw.New(locktest.Memory(t), row.opts...)
		locktest.OK(t, err)
		if got, err := lockedBy(t, guard, refund, rpctest.Order()); got != row.want || err != nil || slices.Contains(guard.Methods(), refund) != (got != "none") {
			t.Errorf("%s: locked %q, %v", name, got, err)
		}
	}
}

// lockedBy calls a unary method and returns the name that was locked.
func lockedBy(t *testing.T, guard *grpcmw.Interceptors, method string, req any) (name string, err error) {
	t.Helper()
	_, err = guard.Unary()(t.Context(), req, &grpc.UnaryServerInfo{FullMethod: method}, func(ctx context.Context, _ any) (any, error) {
		name = locktest.NameOf(ctx)
		return struct{}{}, nil
	})
	return name, err
}

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
