package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

// nameOf calls Refund with one rule and returns the name that was locked.
func nameOf(t *testing.T, ctx context.Context, rule grpcmw.Option, req *testpb.RefundRequest) (string, error) {
	t.Helper()
	locks, _ := lockers(t)
	var name string
	client := serve(t, &shop{refund: func(ctx context.Context, _ *testpb.RefundRequest) (*testpb.Reply, error) {
		x, _ := core.FromContext(ctx)
		name = x.Name()
		return &testpb.Reply{}, nil
	}}, grpcmw.ServerOptions(locks, rule)...)
	_, err := client.Refund(ctx, req)
	return name, err
}

func TestFieldsNameTheLock(t *testing.T) {
	t.Parallel()
	full := &testpb.Order{
		Id: -42, Code: "a:b {c}%", Revision: new(int64(0)), Alias: new("x"), Paid: new(false),
		Origin: testpb.Channel_CHANNEL_UNSPECIFIED.Enum(), Urgent: true, Channel: testpb.Channel_CHANNEL_PHONE,
		Number: 1<<64 - 1, Offset: -7, Hash: 8, Shard: -9, LineItem: 10,
		Parent: &testpb.Order{Id: 1, Parent: &testpb.Order{Id: 2}},
	}
	for field, want := range map[string]string{
		"order.id":               "-42",
		"order.code":             "a%3Ab%20%7Bc%7D%25",
		"order.revision":         "0", // optional and set
		"order.alias":            "x",
		"order.paid":             "false", // optional and set
		"order.origin":           "0",     // optional and set
		"order.urgent":           "true",
		"order.channel":          "2",
		"order.number":           "18446744073709551615",
		"order.offset":           "-7",
		"order.hash":             "8",
		"order.shard":            "-9",
		"order.line_item":        "10",
		"order.parent.parent.id": "2",
		"note":                   "42", // the same as an integer 42
		"account":                "5",  // in a oneof
	} {
		t.Run(field, func(t *testing.T) {
			t.Parallel()
			req := &testpb.RefundRequest{Order: full, Note: "42", Receiver: &testpb.RefundRequest_Account{Account: 5}}
			name, err := nameOf(t, t.Context(), grpcmw.WithMethod(refund, "k:{"+field+"}"), req)
			if err != nil || name != "k:"+want {
				t.Errorf("locked %q, %v, want %q", name, err, "k:"+want)
			}
		})
	}
}

func TestMissingFieldsAreInvalidArgument(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		key string
		req *testpb.RefundRequest
	}{
		"message not set":         {"{order.id}", &testpb.RefundRequest{}},
		"inner message not set":   {"{order.parent.id}", order()},
		"0 without presence":      {"{order.id}", &testpb.RefundRequest{Order: &testpb.Order{}}},
		"false without presence":  {"{order.urgent}", order()},
		"enum 0 without presence": {"{order.channel}", order()},
		"string not set":          {"{note}", order()},
		"optional not set":        {"{order.revision}", order()},
		"empty optional string":   {"{order.alias}", &testpb.RefundRequest{Order: &testpb.Order{Alias: new("")}}},
		"other member of a oneof": {"{account}", &testpb.RefundRequest{Receiver: &testpb.RefundRequest_Email{Email: "e"}}},
		"one of two":              {"{order.id}:{note}", order()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locked, err := nameOf(t, t.Context(), grpcmw.WithMethod(refund, row.key), row.req)
			wantStatus(t, err, codes.InvalidArgument, grpcmw.ReasonKeyInvalid)
			if locked != "" {
				t.Errorf("the handler ran under %q", locked)
			}
		})
	}
}

func TestMetadataNamesTheLock(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		pairs []string
		want  string // "" for InvalidArgument
	}{
		"one":           {[]string{"x-tenant", "acme"}, "t:acme"},
		"equal ones":    {[]string{"x-tenant", "acme", "X-Tenant", "acme"}, "t:acme"},
		"differing":     {[]string{"x-tenant", "acme", "x-tenant", "evil"}, ""},
		"empty and one": {[]string{"x-tenant", "", "x-tenant", "acme"}, ""},
		"empty":         {[]string{"x-tenant", ""}, ""},
		"none":          {nil, ""},
		"escaped":       {[]string{"x-tenant", "a:b"}, "t:a%3Ab"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx := metadata.AppendToOutgoingContext(t.Context(), row.pairs...)
			got, err := nameOf(t, ctx, grpcmw.WithMethod(refund, "t:{metadata:X-Tenant|text}"), order())
			if got != row.want {
				t.Errorf("locked %q, want %q", got, row.want)
			}
			if row.want == "" {
				wantStatus(t, err, codes.InvalidArgument, grpcmw.ReasonKeyInvalid)
			} else if err != nil {
				t.Error(err)
			}
		})
	}
}

func TestMethodAndServiceNameTheLock(t *testing.T) {
	t.Parallel()
	for key, want := range map[string]string{
		"nightly":                   "nightly",
		"{grpc:method}":             "/shop.v1.Orders/Refund",
		"{grpc:service}:{order.id}": "shop.v1.Orders:42",
		"{order.id}:{order.id}:{grpc:service}:{grpc:method}:{order.id}": "42:42:shop.v1.Orders:/shop.v1.Orders/Refund:42",
	} {
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			if got, err := nameOf(t, t.Context(), grpcmw.WithMethod(refund, key), order()); got != want {
				t.Errorf("locked %q, %v, want %q", got, err, want)
			}
		})
	}
}

func TestKeyFunctionNamesTheLock(t *testing.T) {
	t.Parallel()
	typed := grpcmw.WithMethodFunc(refund, func(_ context.Context, req *testpb.RefundRequest) (string, error) {
		return fmt.Sprintf("order:%d", req.GetOrder().GetId()), nil
	})
	untyped := grpcmw.WithMethodFunc(refund, func(ctx context.Context, req proto.Message) (string, error) {
		tenant := metadata.ValueFromIncomingContext(ctx, "x-tenant")
		return fmt.Sprintf("order:%s%d", tenant[0], req.(*testpb.RefundRequest).GetOrder().GetId()), nil
	})
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "4")
	for want, rule := range map[string]grpcmw.Option{"order:42": typed, "order:442": untyped} {
		if got, err := nameOf(t, ctx, rule, order()); got != want {
			t.Errorf("locked %q, %v, want %q", got, err, want)
		}
	}
}

func TestErrorOfAKeyFunctionRefuses(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		name   string
		err    error
		code   codes.Code
		reason string
	}{
		"any error":     {"", errors.New("secret"), codes.InvalidArgument, grpcmw.ReasonKeyInvalid},
		"own status":    {"", status.Error(codes.PermissionDenied, "own"), codes.PermissionDenied, ""},
		"ctx error":     {"", fmt.Errorf("secret: %w", context.DeadlineExceeded), codes.DeadlineExceeded, ""},
		"empty name":    {"", nil, codes.InvalidArgument, grpcmw.ReasonKeyInvalid},
		"unusable name": {"a\x00{b}", nil, codes.InvalidArgument, grpcmw.ReasonKeyInvalid},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locked, err := nameOf(t, t.Context(), grpcmw.WithMethodFunc(refund,
				func(context.Context, *testpb.RefundRequest) (string, error) { return row.name, row.err }), order())
			wantStatus(t, err, row.code, row.reason)
			if locked != "" {
				t.Errorf("the handler ran under %q", locked)
			}
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("the client sees %v", err)
			}
		})
	}
}
