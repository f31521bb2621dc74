package grpcmw_test

import (
	"context"
	"errors"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/connectivity"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/rpctest"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

// busy is a shop whose Refund and Watch run until they are let go.
func busy() (s *shop, running <-chan context.Context, letGo chan<- struct{}) {
	contexts, let := make(chan context.Context, 1), make(chan struct{})
	work := func(ctx context.Context) error {
		contexts <- ctx
		<-let
		return ctx.Err()
	}
	return &shop{
		refund: func(ctx context.Context, _ *testpb.RefundRequest) (*testpb.Reply, error) {
			return &testpb.Reply{}, work(ctx)
		},
		watch: func(_ *testpb.RefundRequest, ss watchServer) error {
			return errors.Join(work(ss.Context()), ss.Send(&testpb.Reply{}))
		},
	}, contexts, let
}

// bothLocked are the rules for what kinds calls.
func bothLocked(locks *core.Locker, opts ...core.Option) []grpc.ServerOption {
	return grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, rpctest.OrderKey, opts...), grpcmw.WithMethod(watch, rpctest.OrderKey, opts...))
}

// stopGracefully returns once the client knows that the server is about to stop.
func stopGracefully(t *testing.T, srv *grpc.Server, conn *grpc.ClientConn) (stopped <-chan struct{}) {
	t.Helper()
	done := make(chan struct{})
	go func() { srv.GracefulStop(); close(done) }()
	for state := conn.GetState(); state == connectivity.Ready; state = conn.GetState() {
		if !conn.WaitForStateChange(t.Context(), state) {
			t.Fatal("GracefulStop has not begun")
		}
	}
	return done
}

func TestGracefulStopLetsHandlersFinishUnderTheirLock(t *testing.T) {
	t.Parallel()
	for name, call := range rpctest.Ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, other := rpctest.Lockers(t)
			service, running, letGo := busy()
			srv, addr := start(t, service, bothLocked(locks)...)
			conn := connect(t, addr)
			answered := make(chan error, 1)
			go func() { _, err := call(t.Context(), testpb.NewOrdersClient(conn), rpctest.Order()); answered <- err }()
			ctx := <-running
			stopped := stopGracefully(t, srv, conn)
			if ctx.Err() != nil || !rpctest.IsHeld(t, other, "order:42") {
				t.Errorf("the handler was disturbed: %v", context.Cause(ctx))
			}
			close(letGo)
			if err := <-answered; err != nil {
				t.Error(err)
			}
			<-stopped
			if rpctest.IsHeld(t, other, "order:42") {
				t.Error("GracefulStop returned before the release")
			}
		})
	}
}

func TestGracefulStopServesRequestsThatWaitForTheirLock(t *testing.T) {
	t.Parallel()
	locks, other := rpctest.Lockers(t)
	release := rpctest.Hold(t, other, "order:42")
	asked := make(chan struct{})
	key := func(context.Context, *testpb.RefundRequest) (string, error) {
		close(asked)
		return "order:42", nil
	}
	srv, addr := start(t, &shop{refund: ok}, grpcmw.ServerOptions(locks, grpcmw.WithMethodFunc(refund, key, core.WithWait(core.WaitForever)))...)
	conn := connect(t, addr)
	answered := make(chan error, 1)
	go func() { _, err := testpb.NewOrdersClient(conn).Refund(t.Context(), rpctest.Order()); answered <- err }()
	<-asked
	stopped := stopGracefully(t, srv, conn)
	release()
	if err := <-answered; err != nil {
		t.Error(err)
	}
	<-stopped
}

func TestStopMakesThoseGiveUpWhoWaitForTheirLock(t *testing.T) {
	t.Parallel()
	locks, other := rpctest.Lockers(t)
	release := rpctest.Hold(t, other, "order:42")
	asked := make(chan struct{})
	key := func(context.Context, *testpb.RefundRequest) (string, error) {
		close(asked)
		return "order:42", nil
	}
	opts := grpcmw.ServerOptions(locks, grpcmw.WithMethodFunc(refund, key, core.WithWait(core.WaitForever)))
	srv, addr := start(t, &shop{refund: func(context.Context, *testpb.RefundRequest) (*testpb.Reply, error) {
		t.Error("the handler ran")
		return &testpb.Reply{}, nil
	}}, opts...)
	client := dial(t, addr)
	answered := make(chan error, 1)
	go func() { _, err := client.Refund(t.Context(), rpctest.Order()); answered <- err }()
	<-asked
	srv.Stop() // waits for handlers
	rpctest.WantStatus(t, <-answered, codes.Unavailable, "")
	release()
	rpctest.ComesFree(t, other, "order:42")
}

func TestStopEndsTheContextAndTheLockStaysUntilTheHandlerReturns(t *testing.T) {
	t.Parallel()
	for name, call := range rpctest.Ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, other := rpctest.Lockers(t)
			service, running, letGo := busy()
			srv, addr := start(t, service, bothLocked(locks)...)
			client := dial(t, addr)
			answered, stopped := make(chan error, 1), make(chan struct{})
			go func() { _, err := call(t.Context(), client, rpctest.Order()); answered <- err }()
			ctx := <-running
			go func() { srv.Stop(); close(stopped) }()
			<-ctx.Done()
			rpctest.WantStatus(t, <-answered, codes.Unavailable, "")
			if !rpctest.IsHeld(t, other, "order:42") {
				t.Error("released under running work")
			}
			close(letGo)
			<-stopped
			if rpctest.IsHeld(t, other, "order:42") {
				t.Error("a Stop that waits for handlers returned before the release")
			}
		})
	}
}

func TestCloseAfterStopWaitsForTheHandler(t *testing.T) {
	t.Parallel()
	for name, call := range rpctest.Ways() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, other := rpctest.Lockers(t)
			service, running, letGo := busy()
			srv, addr := start(t, service, append(bothLocked(locks), grpc.WaitForHandlers(false))...)
			client := dial(t, addr)
			answered, closed := make(chan error, 1), make(chan error, 1)
			go func() { _, err := call(t.Context(), client, rpctest.Order()); answered <- err }()
			x, _ := core.FromContext(<-running)
			srv.Stop()
			rpctest.WantStatus(t, <-answered, codes.Unavailable, "")
			go func() { closed <- locks.Close(context.WithoutCancel(t.Context())) }()
			<-x.Context().Done()
			if cause := context.Cause(x.Context()); !errors.Is(cause, core.ErrClosed) || !rpctest.IsHeld(t, other, "order:42") {
				t.Errorf("released under running work, %v", cause)
			}
			close(letGo)
			if err := <-closed; err != nil {
				t.Error(err)
			}
			if rpctest.IsHeld(t, other, "order:42") {
				t.Error("Close returned before the release")
			}
		})
	}
}
