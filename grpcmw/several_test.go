package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

// both is a key of two names.
var both = "order:{order.id} mail:{email}"

func transfer(id int64, email string) *testpb.RefundRequest {
	return &testpb.RefundRequest{
		Order: &testpb.Order{Id: id}, Receiver: &testpb.RefundRequest_Email{Email: email},
	}
}

func TestSeveralNamesAreHeldTogetherAndFreed(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	check := func(ctx context.Context) {
		for _, name := range []string{"order:42", "mail:a"} {
			if _, err := core.FenceFor(ctx, name); err != nil || !isHeld(t, other, name) {
				t.Errorf("%s is free while the handler runs: %v", name, err)
			}
		}
	}
	client := serve(t, &shop{
		refund: func(ctx context.Context, _ *testpb.RefundRequest) (*testpb.Reply, error) {
			check(ctx)
			return &testpb.Reply{}, nil
		},
		watch: func(_ *testpb.RefundRequest, ss watchServer) error {
			check(ss.Context())
			return nil
		},
	}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, both), grpcmw.WithMethod(watch, both))...)
	calls := map[string]func() error{
		"unary": func() error { _, err := client.Refund(t.Context(), transfer(42, "a")); return err },
		"stream": func() error {
			ss, err := client.Watch(t.Context(), transfer(42, "a"))
			if err != nil {
				return err
			}
			if err := recv(ss); !errors.Is(err, io.EOF) {
				return err
			}
			return nil
		},
	}
	for name, call := range calls {
		if err := call(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		comesFree(t, other, "order:42")
		comesFree(t, other, "mail:a")
		release := hold(t, other, "mail:a")
		wantStatus(t, call(), codes.Aborted, grpcmw.ReasonHeld)
		if isHeld(t, other, "order:42") {
			t.Errorf("%s: a refusal leaves the other name taken", name)
		}
		release()
	}
}

func TestLossOfOneOfSeveralNamesEndsTheCall(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	locks := newLocker(t, store)
	client := serve(t, &shop{
		refund: func(ctx context.Context, _ *testpb.RefundRequest) (*testpb.Reply, error) {
			store.Lose("mail:a")
			<-ctx.Done()
			return &testpb.Reply{}, nil
		},
		watch: func(_ *testpb.RefundRequest, ss watchServer) error {
			store.Lose("mail:a")
			<-ss.Context().Done()
			wantStatus(t, ss.Send(&testpb.Reply{}), codes.Aborted, grpcmw.ReasonLost)
			return nil
		},
	}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, both, core.WithTTL(200*time.Millisecond)),
		grpcmw.WithMethod(watch, both, core.WithTTL(200*time.Millisecond)))...)
	var trailer metadata.MD
	_, err := client.Refund(t.Context(), transfer(42, "a"), grpc.Trailer(&trailer))
	wantLost(t, err, trailer)
	ss, err := client.Watch(t.Context(), transfer(42, "a"))
	if err != nil {
		t.Fatal(err)
	}
	wantLost(t, recv(ss), ss.Trailer())
}

func TestInvalidArgumentSaysWhichFieldAndWhy(t *testing.T) {
	t.Parallel()
	client := serve(t, &shop{refund: ok}, grpcmw.ServerOptions(newLocker(t, memlock.New()),
		grpcmw.WithMethod(refund, "order:{order.id} tenant:{metadata:x-tenant|text}"))...)
	for name, row := range map[string]struct {
		req         *testpb.RefundRequest
		tenants     []string
		field, what string
	}{
		"missing field":       {&testpb.RefundRequest{}, []string{"a"}, "order.id", "missing"},
		"missing metadata":    {order(), nil, "metadata:x-tenant", "missing"},
		"empty metadata":      {order(), []string{""}, "metadata:x-tenant", "missing"},
		"ambiguous metadata":  {order(), []string{"secret", "b"}, "metadata:x-tenant", "ambiguous"},
		"equal metadata pass": {order(), []string{"a", "a"}, "", ""},
	} {
		ctx := t.Context()
		for _, tenant := range row.tenants {
			ctx = metadata.AppendToOutgoingContext(ctx, "x-tenant", tenant) //nolint:fatcontext // two values of one key
		}
		_, err := client.Refund(ctx, row.req)
		if row.field == "" {
			if err != nil {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		wantStatus(t, err, codes.InvalidArgument, grpcmw.ReasonKeyInvalid)
		var violations []*errdetails.BadRequest_FieldViolation
		for _, d := range status.Convert(err).Details() {
			if bad, ok := d.(*errdetails.BadRequest); ok {
				violations = append(violations, bad.GetFieldViolations()...)
			}
		}
		if len(violations) != 1 || violations[0].GetField() != row.field || violations[0].GetDescription() != row.what {
			t.Errorf("%s: %v, want %s %s", name, violations, row.field, row.what)
		}
		if strings.Contains(status.Convert(err).Proto().String(), "secret") {
			t.Errorf("%s: the value is repeated: %v", name, err)
		}
	}
}
