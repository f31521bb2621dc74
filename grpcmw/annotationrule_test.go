package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/holdfastpb"
)

// annotatedGuard returns a function that calls a method locked by r, beside Lockers of the
// same store.
func annotatedGuard(t *testing.T, d driver.Driver, r *holdfastpb.LockRule, defaults ...core.Option) (call func(context.Context, grpc.UnaryHandler) error) {
	t.Helper()
	files := annotated(t, r)
	guard, err := grpcmw.NewFrom(files, newLocker(t, d), grpcmw.WithAnnotations(defaults...))
	if err != nil {
		t.Fatal(err)
	}
	return func(ctx context.Context, handler grpc.UnaryHandler) error {
		_, err := guard.Unary()(ctx, thing(t, files, 42), &grpc.UnaryServerInfo{FullMethod: touch}, handler)
		return err
	}
}

func nothing(context.Context, any) (any, error) { return struct{}{}, nil }

func TestWaitOfAnAnnotationBoundsTheWait(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		wait     *string
		defaults []core.Option
		waits    time.Duration
	}{
		"unset":                   {nil, nil, 0},
		"zero":                    {new("0"), nil, 0},
		"90 s":                    {new("1m30s"), nil, 90 * time.Second},
		"forever":                 {new("forever"), nil, 300 * time.Second}, // until the request's context ends
		"unset, with a default":   {nil, []core.Option{core.WithWait(5 * time.Second)}, 5 * time.Second},
		"its own, over a default": {new("2s"), []core.Option{core.WithWait(5 * time.Second)}, 2 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				store := memlock.New()
				hold(t, newLocker(t, store), "thing:42", core.WithMaxHold(0))
				call := annotatedGuard(t, store, &holdfastpb.LockRule{Key: "thing:{id}", Wait: row.wait}, row.defaults...)
				ctx, cancel := context.WithTimeout(t.Context(), 300*time.Second)
				defer cancel()
				began := time.Now()
				wantStatus(t, call(ctx, nothing), codes.Aborted, grpcmw.ReasonHeld)
				if waited := time.Since(began); waited != row.waits {
					t.Errorf("waited %s, want %s", waited, row.waits)
				}
			})
		})
	}
}

func TestTTLOfAnAnnotationIsTheLeases(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		ttl      *string
		defaults []core.Option
		want     time.Duration
	}{
		"unset":                   {nil, nil, 10 * time.Second},
		"20 s":                    {new("20s"), nil, 20 * time.Second},
		"unset, with a default":   {nil, []core.Option{core.WithTTL(30 * time.Second)}, 30 * time.Second},
		"its own, over a default": {new("20s"), []core.Option{core.WithTTL(30 * time.Second)}, 20 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memlock.New()
			var claim driver.Claim
			call := annotatedGuard(t, faulty{store, func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
				claim = c
				return store.Acquire(ctx, c)
			}}, &holdfastpb.LockRule{Key: "thing:{id}", Ttl: row.ttl}, row.defaults...)
			if err := call(t.Context(), nothing); err != nil {
				t.Fatal(err)
			}
			if claim.Name != "thing:42" || claim.TTL != row.want {
				t.Errorf("claimed %q for %s, want %s", claim.Name, claim.TTL, row.want)
			}
		})
	}
}

func TestMaxHoldOfAnAnnotationEndsTheWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		call := annotatedGuard(t, memlock.New(), &holdfastpb.LockRule{Key: "thing:{id}", MaxHold: new("1m")})
		began := time.Now()
		err := call(t.Context(), func(ctx context.Context, _ any) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		})
		wantStatus(t, err, codes.Aborted, grpcmw.ReasonLost)
		if held := time.Since(began); held != time.Minute {
			t.Errorf("held for %s", held)
		}
	})
}

func TestDedupOfAnAnnotationRefusesFinishedWorkOfItsScope(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		rule *holdfastpb.LockRule
		done string // the scope in which the work is done already
		code codes.Code
	}{
		"its method":      {&holdfastpb.LockRule{Key: "thing:{id}", Dedup: new("24h")}, touch, codes.AlreadyExists},
		"another scope":   {&holdfastpb.LockRule{Key: "thing:{id}", Dedup: new("24h")}, "other", codes.OK},
		"a scope it says": {&holdfastpb.LockRule{Key: "thing:{id}", Dedup: new("24h"), DedupScope: new("other")}, "other", codes.AlreadyExists},
		"the empty scope": {&holdfastpb.LockRule{Key: "thing:{id}", Dedup: new("24h"), DedupScope: new("")}, "", codes.AlreadyExists},
		"off":             {&holdfastpb.LockRule{Key: "thing:{id}", Dedup: new("0")}, touch, codes.OK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memlock.New()
			err := newLocker(t, store).Do(t.Context(), "thing:42", func(context.Context) error { return nil },
				core.WithDedup(time.Hour), core.WithDedupScope(row.done))
			if err != nil {
				t.Fatal(err)
			}
			call := annotatedGuard(t, store, row.rule)
			reason := map[codes.Code]string{codes.AlreadyExists: grpcmw.ReasonDuplicate}[row.code]
			wantStatus(t, call(t.Context(), nothing), row.code, reason)
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
		"unknown field":         {key("thing:{idd}"), `no field "idd"`},
		"unusable field":        {key("thing:{price}"), "double"},
		"unknown source":        {key("thing:{header:x}"), "no such source"},
		"wait in words":         {lockedAs(&holdfastpb.LockRule{Key: "a", Wait: new("soon")}), `wait: time: invalid duration "soon"`},
		"wait without unit":     {lockedAs(&holdfastpb.LockRule{Key: "a", Wait: new("2")}), "wait: time: missing unit"},
		"empty wait":            {lockedAs(&holdfastpb.LockRule{Key: "a", Wait: new("")}), `wait: time: invalid duration ""`},
		"negative wait":         {lockedAs(&holdfastpb.LockRule{Key: "a", Wait: new("-1s")}), "WithWait(-1s)"},
		"tiny wait":             {lockedAs(&holdfastpb.LockRule{Key: "a", Wait: new("1us")}), "WithWait"},
		"huge ttl":              {lockedAs(&holdfastpb.LockRule{Key: "a", Ttl: new("9999999999h")}), "ttl: time: invalid duration"},
		"short ttl":             {lockedAs(&holdfastpb.LockRule{Key: "a", Ttl: new("1ms")}), "WithTTL(1ms)"},
		"endless ttl":           {lockedAs(&holdfastpb.LockRule{Key: "a", Ttl: new("forever")}), "ttl: time: invalid duration"},
		"negative max_hold":     {lockedAs(&holdfastpb.LockRule{Key: "a", MaxHold: new("-1s")}), "WithMaxHold(-1s)"},
		"broken max_hold":       {lockedAs(&holdfastpb.LockRule{Key: "a", MaxHold: new("1")}), "max_hold: time: missing unit"},
		"long dedup":            {lockedAs(&holdfastpb.LockRule{Key: "a", Dedup: new("100000h")}), "WithDedup"},
		"broken dedup":          {lockedAs(&holdfastpb.LockRule{Key: "a", Dedup: new("1 day")}), "dedup: time:"},
		"long scope":            {lockedAs(&holdfastpb.LockRule{Key: "a", DedupScope: new(strings.Repeat("x", 513))}), "WithDedupScope"},
		"a field of the future": {future(t), "does not know"},
		"broken bytes":          {unknown(protowire.AppendVarint(nil, 85625<<3|2), 200), "option (holdfast.v1.lock)"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := private(t, map[string]*descriptorpb.MethodOptions{"Touch": row.opts, "Good": key("thing:{id}"), "Plain": nil})
			guard, err := grpcmw.NewFrom(files, newLocker(t, memlock.New()), grpcmw.WithAnnotations())
			if guard != nil || !errors.Is(err, core.ErrInvalid) {
				t.Fatalf("New: %v, %v", guard, err)
			}
			for _, says := range []string{"grpcmw: ", touch, "(holdfast.v1.lock)", row.says} {
				if !strings.Contains(err.Error(), says) {
					t.Errorf("%q does not say %q", err, says)
				}
			}
			if strings.Contains(err.Error(), "Good") {
				t.Errorf("%q speaks of a rule that works", err)
			}
			// The server's own rule stands in place of the one that cannot work.
			guard, err = grpcmw.NewFrom(files, newLocker(t, memlock.New()), grpcmw.WithAnnotations(), grpcmw.WithMethod(touch, "a"))
			if err != nil || len(guard.Methods()) != 2 {
				t.Errorf("with a rule of the server's own: %v", err)
			}
		})
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

func TestEveryWrongAnnotationIsNamedInOneError(t *testing.T) {
	t.Parallel()
	files := private(t, map[string]*descriptorpb.MethodOptions{
		"B": lockedAs(&holdfastpb.LockRule{}), "A": lockedAs(&holdfastpb.LockRule{Key: "{"}), "C": lockedAs(&holdfastpb.LockRule{Key: "c"}),
	})
	_, err := grpcmw.NewFrom(files, newLocker(t, memlock.New()), grpcmw.WithAnnotations())
	first, second, _ := strings.Cut(err.Error(), "\n")
	if !strings.Contains(first, "Things/A") || !strings.Contains(second, "Things/B") || strings.Contains(second, "\n") {
		t.Errorf("%v", err)
	}
}

func TestOptionThatFitsNoAnnotatedMethodIsAConstructionError(t *testing.T) {
	t.Parallel()
	files := annotated(t, &holdfastpb.LockRule{Key: "a", Ttl: new("3s")})
	for says, opt := range map[string]core.Option{
		"WithRenewEvery(5s)": core.WithRenewEvery(5 * time.Second), // beyond the annotation's TTL
		"option: nil":        nil,
	} {
		_, err := grpcmw.NewFrom(files, newLocker(t, memlock.New()), grpcmw.WithAnnotations(opt))
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), touch) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", says, err)
		}
	}
}

func TestRepeatedReadingOfAnnotationsIsAConstructionError(t *testing.T) {
	t.Parallel()
	_, err := grpcmw.New(newLocker(t, memlock.New()), grpcmw.WithAnnotations(), grpcmw.WithAnnotations())
	if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), "WithAnnotations: given twice") {
		t.Errorf("%v", err)
	}
}

// A descriptor that was loaded by other means than generated code may have the option in
// another form.
func TestAnnotationInAnyFormLocks(t *testing.T) {
	t.Parallel()
	raw, err := proto.Marshal(lockedAs(&holdfastpb.LockRule{Key: "thing:{id}"}))
	if err != nil {
		t.Fatal(err)
	}
	dynamic, types := new(descriptorpb.MethodOptions), new(protoregistry.Types)
	if err := types.RegisterExtension(dynamicpb.NewExtensionType(holdfastpb.E_Lock.TypeDescriptor().Descriptor())); err != nil {
		t.Fatal(err)
	}
	if err := (proto.UnmarshalOptions{Resolver: types}).Unmarshal(raw, dynamic); err != nil {
		t.Fatal(err)
	}
	for name, opts := range map[string]*descriptorpb.MethodOptions{
		"not decoded": unknown(raw), "decoded as a dynamic message": dynamic,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			files := private(t, map[string]*descriptorpb.MethodOptions{"Touch": opts})
			guard, err := grpcmw.NewFrom(files, newLocker(t, memlock.New()), grpcmw.WithAnnotations())
			if err != nil || len(guard.Methods()) != 1 {
				t.Errorf("New: %v, %v", guard, err)
			}
		})
	}
}

// What an annotation says of the kind of lock is what core is told.
func TestAnnotationsSayHowTheNameIsLocked(t *testing.T) {
	t.Parallel()
	free := func(ctx context.Context, l *core.Locker, opts ...core.Option) error {
		x, err := l.TryAcquire(context.WithoutCancel(ctx), "thing:42", opts...)
		if err == nil {
			err = x.Release(ctx)
		}
		return err
	}
	for name, row := range map[string]struct {
		rule          *holdfastpb.LockRule
		during, after func(context.Context, *core.Locker) error
	}{
		"shared": {&holdfastpb.LockRule{Shared: true}, func(ctx context.Context, l *core.Locker) error {
			return free(ctx, l, core.WithShared())
		}, nil},
		"limit": {&holdfastpb.LockRule{Limit: new(int32(2))}, func(ctx context.Context, l *core.Locker) error {
			return free(ctx, l, core.WithLimit(2))
		}, nil},
		"min_hold": {&holdfastpb.LockRule{MinHold: new("1m")}, nil, func(ctx context.Context, l *core.Locker) error {
			if err := free(ctx, l); !errors.Is(err, core.ErrHeld) {
				return fmt.Errorf("min_hold: %w", err)
			}
			return nil
		}},
		"several": {&holdfastpb.LockRule{Key: "thing:{id} all:{id}"}, func(ctx context.Context, _ *core.Locker) error {
			_, err := core.FenceFor(ctx, "all:42")
			return err
		}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memlock.New()
			if row.rule.Key == "" {
				row.rule.Key = "thing:{id}"
			}
			other := newLocker(t, store)
			err := annotatedGuard(t, store, row.rule)(t.Context(), func(ctx context.Context, _ any) (any, error) {
				if row.during == nil {
					return struct{}{}, nil
				}
				return struct{}{}, row.during(ctx, other)
			})
			if err != nil {
				t.Error(err)
			}
			if row.after != nil {
				if err := row.after(t.Context(), other); err != nil {
					t.Error(err)
				}
			}
		})
	}
	t.Run("on_unavailable", func(t *testing.T) {
		t.Parallel()
		store := memlock.New()
		store.SetDown(true)
		call := annotatedGuard(t, fallback.New(store), &holdfastpb.LockRule{Key: "thing:{id}", OnUnavailable: holdfastpb.LockRule_LOCAL_ONLY})
		if err := call(t.Context(), nothing); err != nil {
			t.Error(err)
		}
		closed := annotatedGuard(t, fallback.New(store), &holdfastpb.LockRule{Key: "thing:{id}", OnUnavailable: holdfastpb.LockRule_FAIL_CLOSED},
			core.OnUnavailable(core.LocalOnly))
		wantStatus(t, closed(t.Context(), nothing), codes.Unavailable, grpcmw.ReasonUnavailable)
	})
	for says, rule := range map[string]*holdfastpb.LockRule{
		"shared and limit": {Key: "a", Shared: true, Limit: new(int32(2))},
		"WithLimit(0)":     {Key: "a", Limit: new(int32(0))},
		"min_hold":         {Key: "a", MinHold: new("soon")},
		"on_unavailable":   {Key: "a", OnUnavailable: 9},
		"given twice":      {Key: "a:{id} a:{id}"},
	} {
		_, err := grpcmw.NewFrom(annotated(t, rule), newLocker(t, memlock.New()), grpcmw.WithAnnotations())
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want ErrInvalid that says %q", err, says)
		}
	}
}
