package grpcmw_test

import (
	"context"
	"testing"

	"google.golang.org/grpc/codes"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

// wantDegraded fails the test unless the handler of ctx runs under a degraded lease, or, after
// an outage, under a real one.
func wantDegraded(t *testing.T, ctx context.Context, want bool) {
	t.Helper()
	x, ok := core.FromContext(ctx)
	if !ok || x.Degraded() != want || x.Fence() == 0 != want {
		t.Errorf("a lease %v, degraded %v, fence %d", ok, x.Degraded(), x.Fence())
	}
}

func TestLocalOnlyMethodsGoOnWithoutTheService(t *testing.T) {
	t.Parallel()
	store := memlock.New()
	locks := newLocker(t, fallback.New(store))
	down := true
	var client testpb.OrdersClient
	client = serve(t, &shop{
		refund: func(ctx context.Context, req *testpb.RefundRequest) (*testpb.Reply, error) {
			wantDegraded(t, ctx, down)
			_, err := client.Refund(context.WithoutCancel(t.Context()), req)
			wantStatus(t, err, codes.Aborted, grpcmw.ReasonHeld)
			_, err = client.Quote(context.WithoutCancel(t.Context()), req) // it fails closed, and knows this process's holder
			wantStatus(t, err, codes.Aborted, grpcmw.ReasonHeld)
			return &testpb.Reply{}, nil
		},
		watch: func(_ *testpb.RefundRequest, ss watchServer) error {
			wantDegraded(t, ss.Context(), down)
			return ss.Send(&testpb.Reply{})
		},
		quote: ok,
	}, grpcmw.ServerOptions(locks,
		grpcmw.WithMethod(refund, orderKey, core.OnUnavailable(core.LocalOnly)),
		grpcmw.WithMethod(watch, orderKey, core.OnUnavailable(core.LocalOnly)),
		grpcmw.WithMethod(quote, orderKey))...)
	both := func() {
		t.Helper()
		if _, err := client.Refund(t.Context(), order()); err != nil {
			t.Error(err)
		}
		ss, err := client.Watch(t.Context(), order())
		if err != nil {
			t.Fatal(err)
		}
		if err := recv(ss); err != nil {
			t.Error(err)
		}
	}
	store.SetDown(true)
	both()
	_, err := client.Quote(t.Context(), order())
	wantStatus(t, err, codes.Unavailable, grpcmw.ReasonUnavailable)
	store.SetDown(false)
	if _, err := client.Quote(t.Context(), order()); err != nil { // an answer
		t.Error(err)
	}
	down = false
	both()
}
