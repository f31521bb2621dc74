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
		"no leading slash":    {locks, []grpcmw.Option{grpcmw.WithMethod("shop.v1.Orders/Refund", "a")}, []string{"unknown", "/package.Service/Method"}},
		"repeated method":     {locks, []grpcmw.Option{key("a"), key("b")}, []string{refund, "twice"}},
		"bad template":        {locks, []grpcmw.Option{key("order:{")}, []string{refund, "brace"}},
		"unknown kind":        {locks, []grpcmw.Option{key("{header:x}")}, []string{"{header:x}", "no such source"}},
		"unknown grpc source": {locks, []grpcmw.Option{key("{grpc:peer}")}, []string{"{grpc:peer}", "no such source"}},
		"binary metadata":     {locks, []grpcmw.Option{key("{metadata:X-Trace-Bin}")}, []string{"{metadata:X-Trace-Bin}", "binary"}},
		"no metadata key":     {locks, []grpcmw.Option{key("{metadata:a*}")}, []string{"not a metadata key"}},
		"text without a form": {locks, []grpcmw.Option{key("{metadata:x}")}, []string{"text has no type", "{metadata:x|int}"}},
		"unknown field":       {locks, []grpcmw.Option{key("{order.idd}")}, []string{refund, "{order.idd}", "shop.v1.Order", `"idd"`}},
		"JSON name":           {locks, []grpcmw.Option{key("{order.lineItem}")}, []string{`"line_item"`}},
		"Go name":             {locks, []grpcmw.Option{key("{Order.Id}")}, []string{`"Order"`}},
		"oneof itself":        {locks, []grpcmw.Option{key("{receiver}")}, []string{`"receiver"`}},
		"list":                {locks, []grpcmw.Option{key("{tags}")}, []string{`"tags"`, "list"}},
		"through a list":      {locks, []grpcmw.Option{key("{related.id}")}, []string{`"related"`, "list"}},
		"map":                 {locks, []grpcmw.Option{key("{labels}")}, []string{`"labels"`, "map"}},
		"through a map":       {locks, []grpcmw.Option{key("{parts.value}")}, []string{`"parts"`, "map"}},
		"message":             {locks, []grpcmw.Option{key("{order}")}, []string{`"order"`, "message"}},
		"bytes":               {locks, []grpcmw.Option{key("{order.digest}")}, []string{`"digest"`, "bytes"}},
		"double":              {locks, []grpcmw.Option{key("{order.price}")}, []string{`"price"`, "double"}},
		"through a scalar":    {locks, []grpcmw.Option{key("{order.id.x}")}, []string{`"id"`, `"x"`}},
		"annotations twice":   {locks, []grpcmw.Option{grpcmw.WithAnnotations(), grpcmw.WithAnnotations()}, []string{"WithAnnotations is given twice"}},
		"nil core option":     {locks, []grpcmw.Option{grpcmw.WithMethod(refund, "a", nil)}, []string{refund, "option: nil"}},
		"nil key function":    {locks, []grpcmw.Option{grpcmw.WithMethodFunc[*testpb.RefundRequest](refund, nil)}, []string{refund, "key function: nil"}},
		"other request type": {locks, []grpcmw.Option{grpcmw.WithMethodFunc(refund,
			func(context.Context, *grpc_health_v1.HealthCheckRequest) (string, error) { return "a", nil })},
			[]string{refund, "grpc.health.v1.HealthCheckRequest", "shop.v1.RefundRequest"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i, err := grpcmw.New(row.locks, row.opts...)
			if i != nil || !errors.Is(err, core.ErrInvalid) {
				t.Fatalf("New: %v, %v", i, err)
			}
			for _, part := range append(row.says, "grpcmw: ") {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("%q does not say %q", err, part)
				}
			}
			for ctor, call := range map[string]func(){
				"ServerOptions":           func() { grpcmw.ServerOptions(row.locks, row.opts...) },
				"UnaryServerInterceptor":  func() { grpcmw.UnaryServerInterceptor(row.locks, row.opts...) },
				"StreamServerInterceptor": func() { grpcmw.StreamServerInterceptor(row.locks, row.opts...) },
			} {
				if got := panicOf(call); got != err.Error() {
					t.Errorf("%s panics with %v, want %q", ctor, got, err)
				}
			}
		})
	}
}

func panicOf(call func()) (v any) {
	defer func() { v = recover() }()
	call()
	return nil
}
