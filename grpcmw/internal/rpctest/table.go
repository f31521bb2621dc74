package rpctest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// What a client is told if no handler runs: the table of the package documentation.
func refusals(t *testing.T, f Framework) {
	for why, row := range map[error]struct {
		code   codes.Code
		reason string
		text   string
	}{
		core.ErrHeld:        {codes.Aborted, grpcmw.ReasonHeld, "another request holds"},
		core.ErrUnavailable: {codes.Unavailable, grpcmw.ReasonUnavailable, "did not answer"},
		core.ErrClosed:      {codes.Unavailable, grpcmw.ReasonUnavailable, "about to stop"},
		core.ErrDraining:    {codes.Unavailable, grpcmw.ReasonUnavailable, "about to stop"},
		core.ErrDuplicate:   {codes.AlreadyExists, grpcmw.ReasonDuplicate, "processed before"},
	} {
		for what, call := range Ways() {
			t.Run(why.Error()+", "+what, func(t *testing.T) {
				t.Parallel()
				store := locktest.NewBackend()
				locks := locktest.Locker(t, store)
				locktest.Refuse(t, store, locks, "order:42", why)
				client := f.Mount(t, MustNotRun(t), locks, Locked(OrderKey, core.WithDedup(time.Hour), core.WithDedupScope("pay"))...)
				trailer, err := call(t.Context(), client, Order())
				WantRefusal(t, err, trailer, row.code, row.reason)
				if text := status.Convert(err).Message(); !strings.Contains(text, row.text) {
					t.Errorf("%q does not say %q", text, row.text)
				}
			})
		}
	}
}

// A handler's own answer is the client's, and no error of core tells of names and holders. With a lost lock, the loss is the answer.
func returns(t *testing.T, f Framework) {
	failed := f.Status(codes.FailedPrecondition, "own")
	held := &core.HeldError{Name: "stock:secret", Label: "host-secret", RetryAfter: time.Second}
	lost := &core.LostError{Name: "stock:secret", Reason: core.ReasonExpired}
	ways := map[string][]grpcmw.Option{
		"with a rule": Locked(OrderKey), "without a rule": nil, "lost lock": Locked(OrderKey, core.WithMaxHold(10*time.Millisecond)),
	}
	for name, row := range map[string]struct {
		own    error
		code   codes.Code
		reason string
		core   bool // an error of core
	}{
		"nothing":        {nil, codes.OK, "", false},
		"status":         {failed, codes.FailedPrecondition, "", false},
		"wrapped status": {fmt.Errorf("own: %w", failed), codes.FailedPrecondition, "", false},
		"plain":          {errors.New("own"), codes.Unknown, "", false},
		"ctx error":      {context.DeadlineExceeded, codes.DeadlineExceeded, "", false},
		"held":           {held, codes.Aborted, grpcmw.ReasonHeld, true},
		"lost":           {lost, codes.Aborted, grpcmw.ReasonLost, true},
		"lost, status":   {errors.Join(failed, lost), codes.Aborted, grpcmw.ReasonLost, true},
		"duplicate":      {&core.DuplicateError{Name: "stock:secret", Label: "host-secret"}, codes.AlreadyExists, grpcmw.ReasonDuplicate, true},
		"invalid":        {fmt.Errorf("secret: %w", core.ErrInvalid), codes.InvalidArgument, grpcmw.ReasonKeyInvalid, true},
		"unavailable":    {fmt.Errorf("secret: %w", core.ErrUnavailable), codes.Unavailable, grpcmw.ReasonUnavailable, true},
		"draining":       {core.ErrDraining, codes.Unavailable, grpcmw.ReasonUnavailable, true},
		"released":       {core.ErrReleased, codes.Internal, "", true},
		"ended":          {errors.Join(context.DeadlineExceeded, fmt.Errorf("secret: %w", core.ErrUnavailable)), codes.DeadlineExceeded, "", true},
	} {
		if s := grpcmw.StatusFor(row.own); (s != nil) != row.core || row.core && s.Code() != row.code {
			t.Errorf("%s: StatusFor: %v", name, s)
		}
		for kind, rules := range ways {
			for what, call := range Ways() {
				t.Run(strings.Join([]string{name, kind, what}, ", "), func(t *testing.T) {
					t.Parallel()
					client := f.Mount(t, func(ctx context.Context, _ *testpb.RefundRequest) error {
						if kind == "lost lock" {
							if <-ctx.Done(); !errors.Is(context.Cause(ctx), core.ErrLost) {
								t.Errorf("ended by %v", context.Cause(ctx))
							}
						}
						return row.own
					}, locktest.Memory(t), rules...)
					trailer, err := call(t.Context(), client, Order())
					switch {
					case kind == "lost lock":
						WantBegun(t, err, trailer, codes.Aborted, grpcmw.ReasonLost)
					case row.core:
						WantBegun(t, err, trailer, row.code, row.reason)
					default:
						WantStatus(t, err, row.code, row.reason)
						if trailer.Get("grpc-retry-pushback-ms") != nil {
							t.Error("pushback on a handler's own answer")
						}
					}
				})
			}
		}
	}
}

func dedup(t *testing.T, f Framework) {
	results := []error{f.Status(codes.Internal, "own"), nil, nil}
	client := f.Mount(t, func(ctx context.Context, req *testpb.RefundRequest) error {
		if name := locktest.NameOf(ctx); name != "order:42" || !proto.Equal(req, Order()) {
			t.Errorf("%v runs under %s", req, name)
		}
		err := results[0]
		results = results[1:]
		return err
	}, locktest.Memory(t), Locked(OrderKey, core.WithDedup(time.Hour))...)
	unary, stream := Ways()["unary"], Ways()["stream"]
	for i, step := range []struct {
		call Way
		code codes.Code
	}{
		{unary, codes.Internal}, {unary, codes.OK}, {unary, codes.AlreadyExists}, // a failure is not done
		{stream, codes.OK}, {stream, codes.AlreadyExists}, // it is another method's work
	} {
		if _, err := step.call(t.Context(), client, Order()); status.Code(err) != step.code {
			t.Errorf("step %d: %v, want %s", i, err, step.code)
		}
	}
}

func sources(t *testing.T, f Framework) {
	req := &testpb.RefundRequest{Note: "42", Order: &testpb.Order{Id: -42}}
	typed := func(_ context.Context, req *testpb.RefundRequest) (string, error) {
		return fmt.Sprint("f:", req.GetOrder().GetId()), nil
	}
	untyped := func(ctx context.Context, req proto.Message) (string, error) {
		return fmt.Sprint("f:", metadata.ValueFromIncomingContext(ctx, "x-tenant")[0], req.(*testpb.RefundRequest).GetNote()), nil
	}
	rules := map[string]grpcmw.Option{"f:-42": grpcmw.WithMethodFunc(Refund, typed), "f:acme42": grpcmw.WithMethodFunc(Refund, untyped)}
	for key, want := range map[string]string{
		"{order.id}":                    "-42",
		"{note}":                        "42", // the same as an integer 42
		"{metadata:X-Tenant|text}":      "acme",
		"{metadata:x-tenant|text}/same": "acme/same", // sent twice
		"{metadata:az09|int}":           "7",         // sent as 007
		"nightly":                       "nightly",
		"{grpc:method}":                 "/shop.v1.Orders/Refund",
		"{grpc:service}:{note}:{note}":  "shop.v1.Orders:42:42",
	} {
		rules[want] = grpcmw.WithMethod(Refund, key)
	}
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "acme", "X-Tenant", "acme", "az09", "007")
	for want, rule := range rules {
		var name string
		client := f.Mount(t, func(ctx context.Context, _ *testpb.RefundRequest) error {
			name = locktest.NameOf(ctx)
			return nil
		}, locktest.Memory(t), rule)
		if _, err := client.Refund(ctx, req); err != nil || name != want {
			t.Errorf("locked %q, %v, want %q", name, err, want)
		}
	}
}

// Whatever is wrong with a value of a request: the client is told which source it is, and what is wrong, and never the
// value. No handler has run.
func badValues(t *testing.T, f Framework) {
	note := &testpb.RefundRequest{Note: "secret"}
	for name, row := range map[string]struct {
		key   string
		req   *testpb.RefundRequest
		pairs []string // metadata
		what  string
	}{
		"message not set":        {"{order.id}", &testpb.RefundRequest{}, nil, "missing"},
		"0 without presence":     {"{order.id}", &testpb.RefundRequest{Order: &testpb.Order{}}, nil, "missing"},
		"string not set":         {"{note}", Order(), nil, "missing"},
		"of the second template": {"note:{note} order:{order.id}", note, nil, "missing"},
		"field not of its form":  {"{note|int}", note, nil, "invalid"},
		"no metadata":            {"{metadata:x-tenant|text}", Order(), nil, "missing"},
		"metadata that differ":   {"{metadata:x-tenant|text}", Order(), []string{"x-tenant", "secret", "x-tenant", "b"}, "ambiguous"},
		"no UUID":                {"{metadata:x-tenant|uuid}", Order(), []string{"x-tenant", "secret"}, "invalid"},
	} {
		for what, call := range Ways() {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				client := f.Mount(t, MustNotRun(t), locktest.Memory(t), Locked(row.key)...)
				trailer, err := call(metadata.AppendToOutgoingContext(t.Context(), row.pairs...), client, row.req)
				WantRefusal(t, err, trailer, codes.InvalidArgument, grpcmw.ReasonKeyInvalid)
				if text := status.Convert(err).Message(); !strings.Contains(text, "}, which names a lock, is "+row.what) {
					t.Errorf("%q does not say what is wrong", text)
				}
				source := row.key[strings.LastIndex(row.key, "{")+1 : len(row.key)-1]
				source, _, _ = strings.Cut(source, "|")
				violations := detail[errdetails.BadRequest](err).GetFieldViolations()
				if len(violations) != 1 || violations[0].GetField() != source || !strings.Contains(violations[0].GetDescription(), row.what) {
					t.Errorf("%v, want %s: %s", violations, source, row.what)
				}
			})
		}
	}
}

func keyFunctions(t *testing.T, f Framework) {
	for name, row := range map[string]struct {
		name   string
		err    error
		code   codes.Code
		reason string
	}{
		"any error":     {"", errors.New("secret"), codes.InvalidArgument, grpcmw.ReasonKeyInvalid},
		"own status":    {"", status.Error(codes.PermissionDenied, "own"), codes.PermissionDenied, ""},
		"status inside": {"", fmt.Errorf("secret: %w", status.Error(codes.PermissionDenied, "own")), codes.PermissionDenied, ""},
		"status beside": {"", errors.Join(status.Error(codes.PermissionDenied, "own"), &core.HeldError{Name: "secret"}), codes.PermissionDenied, ""},
		"status OK":     {"", okStatus{}, codes.InvalidArgument, grpcmw.ReasonKeyInvalid},
		"ctx error":     {"", fmt.Errorf("secret: %w", context.DeadlineExceeded), codes.DeadlineExceeded, ""},
		"cancelled":     {"", fmt.Errorf("secret: %w", context.Canceled), codes.Canceled, ""},
		"empty name":    {"", nil, codes.InvalidArgument, grpcmw.ReasonKeyInvalid},
		"unusable name": {"secret\x00{b}", nil, codes.InvalidArgument, grpcmw.ReasonKeyInvalid},
	} {
		for what, call := range Ways() {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				key := func(context.Context, *testpb.RefundRequest) (string, error) { return row.name, row.err }
				client := f.Mount(t, MustNotRun(t), locktest.Memory(t),
					grpcmw.WithMethodFunc(Refund, key), grpcmw.WithMethodFunc(Watch, key))
				_, err := call(t.Context(), client, Order())
				WantStatus(t, err, row.code, row.reason)
				if strings.Contains(err.Error(), "secret") {
					t.Errorf("the client sees %v", err)
				}
			})
		}
	}
}

// okStatus is an error that calls itself a success.
type okStatus struct{}

func (okStatus) Error() string              { return "secret" }
func (okStatus) GRPCStatus() *status.Status { return status.New(codes.OK, "secret") }
