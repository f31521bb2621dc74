package grpcmw_test

import (
	"context"
	"errors"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

func TestHandlerRunsUnderTheLockNamedByItsRequest(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	client := serve(t, &shop{refund: func(ctx context.Context, _ *testpb.RefundRequest) (*testpb.Reply, error) {
		x, ok := core.FromContext(ctx)
		if !ok || x.Name() != "order:42" || x.Err() != nil {
			t.Errorf("lease in the handler's context: %v", x)
		}
		if !isHeld(t, other, "order:42") {
			t.Error("order:42 is free while the handler runs")
		}
		return &testpb.Reply{Text: "refunded"}, nil
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey))...)

	reply, err := client.Refund(t.Context(), order())
	if err != nil || reply.GetText() != "refunded" {
		t.Fatalf("Refund: %v, %v", reply, err)
	}
	comesFree(t, other, "order:42")
}

func TestUnlistedMethodPassesThrough(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	hold(t, other, "order:42")
	client := serve(t, &shop{quote: func(ctx context.Context, req *testpb.RefundRequest) (*testpb.Reply, error) {
		if _, locked := core.FromContext(ctx); locked {
			t.Error("an unlisted method was locked")
		}
		return ok(ctx, req)
	}, watch: func(_ *testpb.RefundRequest, ss watchServer) error {
		if _, locked := core.FromContext(ss.Context()); locked {
			t.Error("an unlisted stream was locked")
		}
		return ss.Send(&testpb.Reply{})
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey))...)
	if _, err := client.Quote(t.Context(), order()); err != nil {
		t.Fatal(err)
	}
	ss, err := client.Watch(t.Context(), order())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ss.Recv(); err != nil {
		t.Error(err)
	}
}

func TestErrorsOfTheHandlerPassUnchanged(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	hold(t, other, "taken")
	lose := func(ctx context.Context) error { // an inner lease's loss is not the door's
		return locks.Do(ctx, "inner", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, shortLived()...)
	}
	sentinel := status.Error(codes.FailedPrecondition, "own")
	for name, row := range map[string]struct {
		handle func(context.Context) error
		code   codes.Code
		is     error
	}{
		"own status":         {func(context.Context) error { return sentinel }, codes.FailedPrecondition, sentinel},
		"inner ErrHeld":      {func(ctx context.Context) error { _, err := locks.TryAcquire(ctx, "taken"); return err }, codes.Unknown, core.ErrHeld},
		"inner loss":         {lose, codes.Unknown, core.ErrLost},
		"inner ErrDuplicate": {func(context.Context) error { return &core.DuplicateError{Name: "x"} }, codes.Unknown, core.ErrDuplicate},
		"inner invalid":      {func(ctx context.Context) error { _, err := locks.TryAcquire(ctx, ""); return err }, codes.Unknown, core.ErrInvalid},
		"own ctx error":      {func(context.Context) error { return context.DeadlineExceeded }, codes.DeadlineExceeded, context.DeadlineExceeded},
		"closed, inside":     {func(context.Context) error { return core.ErrClosed }, codes.Unknown, core.ErrClosed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs := make(chan error, 1)
			client := serve(t, &shop{refund: func(ctx context.Context, _ *testpb.RefundRequest) (*testpb.Reply, error) {
				return nil, row.handle(ctx)
			}}, append([]grpc.ServerOption{recorder(errs)},
				grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, "{order.code}"))...)...)
			var trailer metadata.MD
			_, err := client.Refund(t.Context(), &testpb.RefundRequest{Order: &testpb.Order{Code: strings.ReplaceAll(name, " ", "-")}}, grpc.Trailer(&trailer))
			wantStatus(t, err, row.code, "")
			if trailer.Get("grpc-retry-pushback-ms") != nil {
				t.Error("pushback on a handler's own error")
			}
			if err := <-errs; !errors.Is(err, row.is) {
				t.Errorf("the door returned %v, want the handler's own %v", err, row.is)
			}
		})
	}
}

// recoverer turns a panic into a status outside the door, and says what it was.
func recoverer(values chan<- any) []grpc.ServerOption {
	recoverTo := func(err *error) {
		if v := recover(); v != nil {
			values <- v
			*err = status.Error(codes.Internal, "panic")
		}
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
			defer recoverTo(&err)
			return handler(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
			defer recoverTo(&err)
			return handler(srv, ss)
		}),
	}
}

func TestPanicOfAUnaryHandlerPassesAndReleases(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	values := make(chan any, 1)
	boom := &struct{ int }{1}
	client := serve(t, &shop{refund: func(context.Context, *testpb.RefundRequest) (*testpb.Reply, error) {
		panic(boom)
	}}, append(recoverer(values), grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey))...)...)
	_, err := client.Refund(t.Context(), order())
	wantStatus(t, err, codes.Internal, "")
	if v := <-values; v != boom {
		t.Errorf("panic value %v", v)
	}
	comesFree(t, other, "order:42")
}

func TestGoexitOfAUnaryHandlerReleases(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	ctx, cancel := context.WithCancel(t.Context())
	client := serve(t, &shop{refund: func(context.Context, *testpb.RefundRequest) (*testpb.Reply, error) {
		defer cancel() // gRPC sends no status then
		runtime.Goexit()
		return nil, nil
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey))...)
	if _, err := client.Refund(ctx, order()); err == nil {
		t.Error("no error")
	}
	comesFree(t, other, "order:42")
}

func TestLockOutlivesACallerThatIsGone(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	running, let := make(chan context.Context), make(chan struct{})
	client := serve(t, &shop{refund: func(ctx context.Context, _ *testpb.RefundRequest) (*testpb.Reply, error) {
		running <- ctx
		<-let
		return nil, ctx.Err()
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey))...)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { _, err := client.Refund(ctx, order()); done <- err }()
	work := <-running
	cancel()
	wantStatus(t, <-done, codes.Canceled, "")
	<-work.Done()
	if !errors.Is(context.Cause(work), context.Canceled) || errors.Is(context.Cause(work), core.ErrLost) {
		t.Errorf("cause %v", context.Cause(work))
	}
	if !isHeld(t, other, "order:42") {
		t.Error("released under running work")
	}
	close(let)
	comesFree(t, other, "order:42")
}

func TestDedupIsPerMethodByDefault(t *testing.T) {
	t.Parallel()
	locks, _ := lockers(t)
	var fail atomic.Bool
	handle := func(ctx context.Context, req *testpb.RefundRequest) (*testpb.Reply, error) {
		if fail.Load() {
			return nil, status.Error(codes.Internal, "own")
		}
		return ok(ctx, req)
	}
	client := serve(t, &shop{refund: handle, quote: handle}, grpcmw.ServerOptions(locks,
		grpcmw.WithMethod(refund, orderKey, core.WithDedup(time.Hour)),
		grpcmw.WithMethod(quote, orderKey, core.WithDedup(time.Hour)))...)
	fail.Store(true)
	_, err := client.Refund(t.Context(), order())
	wantStatus(t, err, codes.Internal, "")
	fail.Store(false)
	if _, err := client.Refund(t.Context(), order()); err != nil {
		t.Errorf("a failure counted as done: %v", err)
	}
	_, err = client.Refund(t.Context(), order())
	wantStatus(t, err, codes.AlreadyExists, grpcmw.ReasonDuplicate)
	if _, err := client.Quote(t.Context(), order()); err != nil {
		t.Errorf("another method's work counted: %v", err)
	}
}
