package grpcmw_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/gofeaturespb"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/holdfastpb"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

const (
	auditsBook  = "/shop.annotated.v1.Audits/Book"
	auditsClose = "/shop.annotated.v1.Audits/Close"
	auditsRead  = "/shop.annotated.v1.Audits/Read"
)

func exclusive(key string) (string, []core.Option, error) { return key, nil, nil }

// policy locks methods whose policy says so.
func policy(p *testpb.Policy) (string, []core.Option, error) {
	if p.GetLock() == "" {
		return "", nil, grpcmw.ErrNoLock
	}
	return p.GetLock(), nil, nil
}

func TestMethodsAreLockedByAnOptionOfTheUsersOwn(t *testing.T) {
	t.Parallel()
	opts := []grpcmw.Option{
		grpcmw.WithMethodOption(testpb.E_Exclusive, exclusive),
		grpcmw.WithMethodOption(testpb.E_Policy, policy),
	}
	req := &testpb.RefundRequest{Order: &testpb.Order{Id: 42}, Note: "n"}
	for method, want := range map[string]string{
		auditsBook:  "order:42", // a string
		auditsClose: "book:n",   // a message
		auditsRead:  "",         // ErrNoLock
		reserve:     "",         // has another option
		quote:       "",         // has none
	} {
		if got, err := lockedBy(t, opts, method, req); got != want || err != nil {
			t.Errorf("%s: locked %q, %v, want %q", method, got, err, want)
		}
	}
}

func TestFunctionTakesTheValueAsAnInterfaceToo(t *testing.T) {
	t.Parallel()
	opt := grpcmw.WithMethodOption(testpb.E_Policy, func(m proto.Message) (string, []core.Option, error) {
		return policy(m.(*testpb.Policy))
	})
	if got, err := lockedBy(t, []grpcmw.Option{opt}, auditsClose, &testpb.RefundRequest{Note: "n"}); got != "book:n" {
		t.Errorf("locked %q, %v", got, err)
	}
}

func TestOptionsOfTheFunctionAreTheRules(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	var ttl time.Duration
	locks := newLocker(t, faulty{store, func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
		ttl = c.TTL
		return store.Acquire(ctx, c)
	}})
	door, err := grpcmw.New(locks, grpcmw.WithMethodOption(testpb.E_Exclusive, func(key string) (string, []core.Option, error) {
		return key, []core.Option{core.WithTTL(20 * time.Second)}, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	if name, err := lockedIn(t, door, auditsBook, order()); name != "order:42" || ttl != 20*time.Second {
		t.Errorf("locked %q for %s, %v", name, ttl, err)
	}
}

func TestMethodOptionThatCannotWorkIsAConstructionError(t *testing.T) {
	t.Parallel()
	own := errors.New("own")
	byName := grpcmw.WithMethodOption(testpb.E_Exclusive, exclusive)
	for name, row := range map[string]struct {
		opts []grpcmw.Option
		says []string
	}{
		"nil extension": {[]grpcmw.Option{grpcmw.WithMethodOption(nil, exclusive)}, []string{"WithMethodOption", "nil"}},
		"nil function": {[]grpcmw.Option{grpcmw.WithMethodOption[string](testpb.E_Exclusive, nil)},
			[]string{"(shop.annotated.v1.exclusive)", "function: nil"}},
		"no option of methods": {[]grpcmw.Option{grpcmw.WithMethodOption(gofeaturespb.E_Go, func(*gofeaturespb.GoFeatures) (string, []core.Option, error) {
			return "a", nil, nil
		})}, []string{"google.protobuf.FeatureSet", "google.protobuf.MethodOptions"}},
		"another type": {[]grpcmw.Option{grpcmw.WithMethodOption(testpb.E_Policy, exclusive)},
			[]string{"(shop.annotated.v1.policy)", "string", "*testpb.Policy"}},
		"another interface": {[]grpcmw.Option{grpcmw.WithMethodOption(testpb.E_Exclusive, func(proto.Message) (string, []core.Option, error) {
			return "a", nil, nil
		})}, []string{"string", "Message"}},
		"an error of the function": {[]grpcmw.Option{grpcmw.WithMethodOption(testpb.E_Exclusive, func(string) (string, []core.Option, error) {
			return "", nil, own
		})}, []string{auditsBook, "(shop.annotated.v1.exclusive)", "own"}},
		"an option that cannot work": {[]grpcmw.Option{grpcmw.WithMethodOption(testpb.E_Exclusive, func(key string) (string, []core.Option, error) {
			return key, []core.Option{core.WithTTL(1)}, nil
		})}, []string{auditsBook, "WithTTL"}},
		"no key": {[]grpcmw.Option{grpcmw.WithMethodOption(testpb.E_Policy, func(*testpb.Policy) (string, []core.Option, error) {
			return "", nil, nil
		})}, []string{auditsClose, auditsRead, "empty"}},
		"a key for another request": {[]grpcmw.Option{grpcmw.WithMethodOption(testpb.E_Exclusive, func(string) (string, []core.Option, error) {
			return "{uuid}", nil, nil
		})}, []string{auditsBook, `"uuid"`}},
		"read twice": {[]grpcmw.Option{byName, byName}, []string{auditsBook, "both lock it"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			door, err := grpcmw.New(newLocker(t, memlock.New()), row.opts...)
			if door != nil || !errors.Is(err, core.ErrInvalid) {
				t.Fatalf("New: %v, %v", door, err)
			}
			for _, part := range append(row.says, "grpcmw: ") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			if name == "an error of the function" && !errors.Is(err, own) {
				t.Errorf("%v hides the function's own error", err)
			}
		})
	}
}

func TestMethodThatTwoOptionsLockIsAConstructionError(t *testing.T) {
	t.Parallel()
	opts := lockedAs(&holdfastpb.LockRule{Key: "thing:{id}"})
	proto.SetExtension(opts, testpb.E_Exclusive, "thing:{id}")
	files := private(t, map[string]*descriptorpb.MethodOptions{"Touch": opts})
	both := []grpcmw.Option{grpcmw.WithAnnotations(), grpcmw.WithMethodOption(testpb.E_Exclusive, exclusive)}
	_, err := grpcmw.NewFrom(files, newLocker(t, memlock.New()), both...)
	for _, says := range []string{touch, "(holdfast.v1.lock)", "(shop.annotated.v1.exclusive)", "both lock it"} {
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%v does not say %q", err, says)
		}
	}
	if _, err := grpcmw.NewFrom(files, newLocker(t, memlock.New()), append(both, grpcmw.WithMethod(touch, "a"))...); err != nil {
		t.Errorf("with a rule of the server's own: %v", err)
	}
}

func TestFunctionIsNotAskedAboutMethodsOfTheServersOwnRules(t *testing.T) {
	t.Parallel()
	opts := []grpcmw.Option{
		grpcmw.WithMethodOption(testpb.E_Exclusive, func(string) (string, []core.Option, error) {
			t.Error("asked")
			return "theirs", nil, nil
		}),
		grpcmw.WithMethod(auditsBook, "mine"),
	}
	if got, err := lockedBy(t, opts, auditsBook, order()); got != "mine" {
		t.Errorf("locked %q, %v", got, err)
	}
}

func TestListOptionIsOneValue(t *testing.T) {
	t.Parallel()
	var option protoreflect.ExtensionType = testpb.E_Keys
	opts := new(descriptorpb.MethodOptions)
	proto.SetExtension(opts, option, []string{"thing", "{id}"})
	files := private(t, map[string]*descriptorpb.MethodOptions{"Touch": opts, "Empty": nil})
	door, err := grpcmw.NewFrom(files, newLocker(t, memlock.New()), grpcmw.WithMethodOption(option, func(keys []string) (string, []core.Option, error) {
		return strings.Join(keys, ":"), nil, nil
	}))
	if err != nil {
		t.Fatal(err)
	}
	name, err := lockedIn(t, door, touch, thing(t, files, 42))
	if name != "thing:42" {
		t.Errorf("locked %q, %v", name, err)
	}
	wantStatus(t, err, codes.OK, "")
}
