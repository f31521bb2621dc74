package grpcmw_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"google.golang.org/grpc/health/grpc_health_v1"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestRulesThatCannotWorkAreConstructionErrors(t *testing.T) {
	t.Parallel()
	locks := locktest.Memory(t)
	key := func(key string) grpcmw.Option { return grpcmw.WithMethod(refund, key) }
	for name, row := range map[string]struct {
		locks *core.Locker
		opts  []grpcmw.Option
		says  []string
	}{
		"nil Locker":          {nil, nil, []string{"Locker: nil"}},
		"zero Locker":         {&core.Locker{}, nil, []string{"Locker"}},
		"nil option":          {locks, []grpcmw.Option{nil}, []string{"nil option"}},
		"unknown service":     {locks, []grpcmw.Option{grpcmw.WithMethod("/shop.v2.Orders/Refund", "a")}, []string{"/shop.v2.Orders/Refund", "unknown"}},
		"unknown method":      {locks, []grpcmw.Option{grpcmw.WithMethod("/shop.v1.Orders/Refnud", "a")}, []string{"Refnud", "unknown"}},
		"a service":           {locks, []grpcmw.Option{grpcmw.WithMethod("/shop.v1/Orders", "a")}, []string{"/shop.v1/Orders", "unknown"}},
		"no leading slash":    {locks, []grpcmw.Option{grpcmw.WithMethod("shop.v1.Orders/Refund", "a")}, []string{"unknown", "/package.Service/Method"}},
		"repeated method":     {locks, []grpcmw.Option{key("a"), key("b")}, []string{refund, "twice"}},
		"bad template":        {locks, []grpcmw.Option{key("order:{")}, []string{refund, "brace"}},
		"unknown kind":        {locks, []grpcmw.Option{key("{header:x}")}, []string{"{header:x}", "no such source"}},
		"unknown grpc source": {locks, []grpcmw.Option{key("{grpc:peer}")}, []string{"{grpc:peer}", "no such source"}},
		"binary metadata":     {locks, []grpcmw.Option{key("{metadata:X-Trace-Bin}")}, []string{"{metadata:X-Trace-Bin}", "binary"}},
		"no metadata key":     {locks, []grpcmw.Option{key("{metadata:a*}")}, []string{"not a metadata key"}},
		"text without a form": {locks, []grpcmw.Option{key("{metadata:x}")}, []string{"text has no type", "{metadata:x|int}"}},
		"annotations twice":   {locks, []grpcmw.Option{grpcmw.WithAnnotations(), grpcmw.WithAnnotations()}, []string{"WithAnnotations is given twice"}},
		"nil core option":     {locks, []grpcmw.Option{grpcmw.WithMethod(refund, "a", nil)}, []string{refund, "option: nil"}},
		"nil key function":    {locks, []grpcmw.Option{grpcmw.WithMethodFunc[*testpb.RefundRequest](refund, nil)}, []string{refund, "key function: nil"}},
		// Its messages may name different things, and the handler would work on all of them under the lock of the first one.
		"a field of a stream": {locks, []grpcmw.Option{grpcmw.WithMethod(negotiate, "{note}")}, []string{negotiate, "{metadata:x|text}"}},
		"beside metadata": {locks, []grpcmw.Option{grpcmw.WithMethod(negotiate, "note:{note} tenant:{metadata:x|text}")},
			[]string{negotiate, "stream of messages"}},
		"a function of one": {locks, []grpcmw.Option{grpcmw.WithMethodFunc(negotiate,
			func(context.Context, *testpb.RefundRequest) (string, error) { return "a", nil })}, []string{negotiate, "{metadata:x|text}"}},
		"other request type": {locks, []grpcmw.Option{grpcmw.WithMethodFunc(refund,
			func(context.Context, *grpc_health_v1.HealthCheckRequest) (string, error) { return "a", nil })},
			[]string{refund, "grpc.health.v1.HealthCheckRequest", "shop.v1.RefundRequest"}},
	} {
		i, err := grpcmw.New(row.locks, row.opts...)
		if i != nil || !errors.Is(err, core.ErrInvalid) {
			t.Fatalf("%s: %v, %v", name, i, err)
		}
		for _, part := range append(row.says, "grpcmw: ") {
			if !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %q does not say %q", name, err, part)
			}
		}
		for ctor, call := range map[string]func(){
			"ServerOptions":           func() { grpcmw.ServerOptions(row.locks, row.opts...) },
			"UnaryServerInterceptor":  func() { grpcmw.UnaryServerInterceptor(row.locks, row.opts...) },
			"StreamServerInterceptor": func() { grpcmw.StreamServerInterceptor(row.locks, row.opts...) },
		} {
			if got := panicOf(call); got != err.Error() {
				t.Errorf("%s: %s panics with %v, want %q", name, ctor, got, err)
			}
		}
	}
	files := annotated(t, nil)
	for key, says := range map[string]string{
		"{idd}":           `private.v1.Thing has no field "idd"`,
		"{lineItem}":      `use the proto name, "line_item"`,
		"{Id}":            `"Id"`,
		"{receiver}":      `"receiver"`, // a oneof
		"{tags}":          `"tags" is a list`,
		"{related.id}":    `"related" is a list`,
		"{parts.value}":   `"parts" is a list or a map`,
		"{parent}":        `"parent" is of kind message`,
		"{parent.digest}": `"digest" is of kind bytes`,
		"{price}":         `"price" is of kind double`,
		"{weight}":        `"weight" is of kind float`,
		"{id.x}":          `"id" is no message and has no field "x"`,
	} {
		_, err := grpcmw.NewFrom(files, locks, grpcmw.WithMethod(touch, key))
		if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), touch) {
			t.Errorf("%s: %v, want %q", key, err, says)
		}
	}
}

func panicOf(call func()) (v any) {
	defer func() { v = recover() }()
	call()
	return nil
}
