package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

func TestSourcesNameTheLock(t *testing.T) {
	t.Parallel()
	req := &testpb.RefundRequest{Note: "42", Receiver: &testpb.RefundRequest_Account{Account: 5}, Order: &testpb.Order{
		Id: -42, Code: "a:b {c}%", Revision: new(int64(0)), Alias: new("x"), Paid: new(false),
		Origin: testpb.Channel_CHANNEL_UNSPECIFIED.Enum(), Urgent: true, Channel: testpb.Channel_CHANNEL_PHONE,
		Number: 1<<64 - 1, Offset: -7, Hash: 8, Shard: -9, LineItem: 10,
		Parent: &testpb.Order{Id: 1, Parent: &testpb.Order{Id: 2}},
	}}
	typed := func(_ context.Context, req *testpb.RefundRequest) (string, error) {
		return fmt.Sprint("f:", req.GetOrder().GetId()), nil
	}
	untyped := func(ctx context.Context, req proto.Message) (string, error) {
		return fmt.Sprint("f:", metadata.ValueFromIncomingContext(ctx, "x-tenant")[0], req.(*testpb.RefundRequest).GetNote()), nil
	}
	rules := map[string]grpcmw.Option{"f:-42": grpcmw.WithMethodFunc(refund, typed), "f:acme42": grpcmw.WithMethodFunc(refund, untyped)}
	for key, want := range map[string]string{
		"{order.id}":                    "-42",
		"{order.code}":                  "a%3Ab%20%7Bc%7D%25",
		"{order.revision}":              "0", // optional and set
		"{order.alias}":                 "x",
		"{order.paid}":                  "false", // optional and set
		"{order.origin}":                "0",     // optional and set
		"{order.urgent}":                "true",
		"{order.channel}":               "2",
		"{order.number}":                "18446744073709551615",
		"{order.offset}":                "-7",
		"{order.hash}":                  "8",
		"{order.shard}":                 "-9",
		"{order.line_item}":             "10",
		"{order.parent.parent.id}":      "2",
		"{note}":                        "42", // the same as an integer 42
		"{account}":                     "5",  // in a oneof
		"{metadata:X-Tenant|text}":      "acme",
		"{metadata:x-tenant|text}/same": "acme/same", // sent twice
		"{metadata:x-number|int}":       "7",         // sent as 007
		"nightly":                       "nightly",
		"{grpc:method}":                 "/shop.v1.Orders/Refund",
		"{grpc:service}:{note}:{note}":  "shop.v1.Orders:42:42",
	} {
		rules[want] = grpcmw.WithMethod(refund, key)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "acme", "X-Tenant", "acme", "x-number", "007")
	for want, rule := range rules {
		var name string
		client := serve(t, handled(func(ctx context.Context, _ *testpb.RefundRequest) error {
			x, _ := core.FromContext(ctx)
			name = x.Name()
			return nil
		}), grpcmw.ServerOptions(newLocker(t, memlock.New()), rule)...)
		if _, err := client.Refund(ctx, req); err != nil || name != want {
			t.Errorf("locked %q, %v, want %q", name, err, want)
		}
	}
}

// Whatever is wrong with a value of a request: the client is told which source it is, and what is wrong, and never the
// value. No handler has run.
func TestABadValueIsInvalidArgumentAndNothingRuns(t *testing.T) {
	t.Parallel()
	few := func(o *testpb.Order) *testpb.RefundRequest { return &testpb.RefundRequest{Order: o} }
	email := &testpb.RefundRequest{Receiver: &testpb.RefundRequest_Email{Email: "secret"}}
	for name, row := range map[string]struct {
		key   string
		req   *testpb.RefundRequest
		pairs []string // metadata
		what  string
	}{
		"message not set":         {"{order.id}", &testpb.RefundRequest{}, nil, "missing"},
		"inner message not set":   {"{order.parent.id}", order(), nil, "missing"},
		"0 without presence":      {"{order.id}", few(&testpb.Order{}), nil, "missing"},
		"false without presence":  {"{order.urgent}", order(), nil, "missing"},
		"enum 0 without presence": {"{order.channel}", order(), nil, "missing"},
		"string not set":          {"{note}", order(), nil, "missing"},
		"optional not set":        {"{order.revision}", order(), nil, "missing"},
		"empty optional string":   {"{order.alias}", few(&testpb.Order{Alias: new("")}), nil, "missing"},
		"other of a oneof":        {"{account}", email, nil, "missing"},
		"the second of two":       {"a:{email}:{note}", email, nil, "missing"},
		"of the second template":  {"mail:{email} note:{note}", email, nil, "missing"},
		"field not of its form":   {"{note|int}", &testpb.RefundRequest{Note: "secret"}, nil, "invalid"},
		"no metadata":             {"{metadata:x-tenant|text}", order(), nil, "missing"},
		"empty metadata":          {"{metadata:x-tenant|text}", order(), []string{"x-tenant", ""}, "missing"},
		"metadata that differ":    {"{metadata:x-tenant|text}", order(), []string{"x-tenant", "secret", "x-tenant", "b"}, "ambiguous"},
		"an empty one, and one":   {"{metadata:x-tenant|text}", order(), []string{"x-tenant", "", "x-tenant", "secret"}, "ambiguous"},
		"no integer":              {"{metadata:x-tenant|int}", order(), []string{"x-tenant", "secret"}, "invalid"},
		"no UUID":                 {"{metadata:x-tenant|uuid}", order(), []string{"x-tenant", "secret"}, "invalid"},
	} {
		for what, call := range ways() {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				client := serve(t, mustNotRun(t), grpcmw.ServerOptions(newLocker(t, memlock.New()), locked(row.key)...)...)
				trailer, err := call(metadata.AppendToOutgoingContext(t.Context(), row.pairs...), client, row.req)
				wantRefusal(t, err, trailer, codes.InvalidArgument, grpcmw.ReasonKeyInvalid)
				if text := status.Convert(err).Message(); !strings.Contains(text, "}, which names a lock, is "+row.what) {
					t.Errorf("%q does not say what is wrong", text)
				}
				source := row.key[strings.LastIndex(row.key, "{")+1 : len(row.key)-1]
				source, _, _ = strings.Cut(source, "|")
				var violations []*errdetails.BadRequest_FieldViolation
				for _, d := range status.Convert(err).Details() {
					if bad, ok := d.(*errdetails.BadRequest); ok {
						violations = append(violations, bad.GetFieldViolations()...)
					}
				}
				if len(violations) != 1 || violations[0].GetField() != source || !strings.Contains(violations[0].GetDescription(), row.what) {
					t.Errorf("%v, want %s: %s", violations, source, row.what)
				}
			})
		}
	}
}

func TestAKeyFunctionThatRefuses(t *testing.T) {
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
		"unusable name": {"secret\x00{b}", nil, codes.InvalidArgument, grpcmw.ReasonKeyInvalid},
		"long name":     {strings.Repeat("secret", 34), nil, codes.InvalidArgument, grpcmw.ReasonKeyInvalid},
	} {
		for what, call := range ways() {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				key := func(context.Context, *testpb.RefundRequest) (string, error) { return row.name, row.err }
				client := serve(t, mustNotRun(t), grpcmw.ServerOptions(newLocker(t, memlock.New()),
					grpcmw.WithMethodFunc(refund, key), grpcmw.WithMethodFunc(watch, key))...)
				_, err := call(t.Context(), client, order())
				wantStatus(t, err, row.code, row.reason)
				if strings.Contains(err.Error(), "secret") {
					t.Errorf("the client sees %v", err)
				}
			})
		}
	}
}
