package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"io"
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
	"github.com/holdfast-go/holdfast/core/memlock"
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

func TestStatusesAndOtherErrorsOfTheHandlerPassUnchanged(t *testing.T) {
	t.Parallel()
	sentinel, plain := status.Error(codes.FailedPrecondition, "own"), errors.New("own")
	for name, row := range map[string]struct {
		own  error
		code codes.Code
	}{
		"status":         {sentinel, codes.FailedPrecondition},
		"wrapped status": {fmt.Errorf("own: %w", sentinel), codes.FailedPrecondition},
		"plain":          {plain, codes.Unknown},
		"ctx error":      {context.DeadlineExceeded, codes.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			errs, trailer := make(chan error, 1), metadata.MD{}
			client := serve(t, &shop{refund: func(context.Context, *testpb.RefundRequest) (*testpb.Reply, error) {
				return nil, row.own
			}}, append([]grpc.ServerOption{recorder(errs)},
				grpcmw.ServerOptions(newLocker(t, memlock.New()), grpcmw.WithMethod(refund, orderKey))...)...)
			_, err := client.Refund(t.Context(), order(), grpc.Trailer(&trailer))
			wantStatus(t, err, row.code, "")
			if trailer.Get("grpc-retry-pushback-ms") != nil {
				t.Error("pushback on a handler's own error")
			}
			if err := <-errs; err != row.own { //nolint:errorlint // the very same
				t.Errorf("the door returned %v, want %v as it is", err, row.own)
			}
		})
	}
}

// insides are the errors of locks inside a handler. Their texts have names and labels.
func insides() map[string]struct {
	own    error
	code   codes.Code
	reason string
} {
	held := &core.HeldError{Name: "stock:secret", Label: "host-secret", RetryAfter: time.Second}
	lost := &core.LostError{Name: "stock:secret", Reason: core.ReasonExpired}
	return map[string]struct {
		own    error
		code   codes.Code
		reason string
	}{
		"held":          {held, codes.Aborted, grpcmw.ReasonHeld},
		"held, wrapped": {fmt.Errorf("reserve: %w", held), codes.Aborted, grpcmw.ReasonHeld},
		"lost":          {lost, codes.Aborted, grpcmw.ReasonLost},
		"lost with a status": {
			errors.Join(status.Error(codes.FailedPrecondition, "own"), lost), codes.Aborted, grpcmw.ReasonLost,
		},
		"duplicate":   {&core.DuplicateError{Name: "stock:secret", Label: "host-secret"}, codes.AlreadyExists, grpcmw.ReasonDuplicate},
		"invalid":     {fmt.Errorf("secret: %w", core.ErrInvalid), codes.InvalidArgument, grpcmw.ReasonKeyInvalid},
		"unavailable": {fmt.Errorf("secret: %w", core.ErrUnavailable), codes.Unavailable, grpcmw.ReasonUnavailable},
		"closed":      {core.ErrClosed, codes.Unavailable, grpcmw.ReasonUnavailable},
		"released":    {core.ErrReleased, codes.Internal, ""},
		"ended":       {errors.Join(context.DeadlineExceeded, fmt.Errorf("secret: %w", core.ErrUnavailable)), codes.DeadlineExceeded, ""},
	}
}

func TestErrorsOfInnerLocksAreAnsweredByTheTableAndTellNothing(t *testing.T) {
	t.Parallel()
	for name, row := range insides() {
		for kind, opts := range map[string][]grpcmw.Option{
			"with a rule":    {grpcmw.WithMethod(refund, orderKey), grpcmw.WithMethod(watch, orderKey), grpcmw.WithMethod(negotiate, "tenant:{metadata:x-tenant|text}")},
			"without a rule": nil,
		} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				client := serve(t, &shop{
					refund:    func(context.Context, *testpb.RefundRequest) (*testpb.Reply, error) { return nil, row.own },
					watch:     func(*testpb.RefundRequest, watchServer) error { return row.own },
					negotiate: func(negotiateServer) error { return row.own },
				}, grpcmw.ServerOptions(newLocker(t, memlock.New()), opts...)...)
				ctx := metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "acme")
				var trailer metadata.MD
				_, err := client.Refund(ctx, order(), grpc.Trailer(&trailer))
				wantInside(t, err, trailer, row.code, row.reason)
				ws, err := client.Watch(ctx, order())
				if err != nil {
					t.Fatal(err)
				}
				_, err = ws.Recv()
				wantInside(t, err, ws.Trailer(), row.code, row.reason)
				ns, err := client.Negotiate(ctx)
				if err != nil {
					t.Fatal(err)
				}
				_, err = ns.Recv()
				wantInside(t, err, ns.Trailer(), row.code, row.reason)
				if got := grpcmw.StatusFor(row.own); got.Code() != row.code || strings.Contains(got.Proto().String(), "secret") {
					t.Errorf("StatusFor: %v", got)
				}
			})
		}
	}
	for _, err := range []error{nil, io.EOF, context.Canceled, status.Error(codes.Aborted, "own")} {
		if s := grpcmw.StatusFor(err); s != nil {
			t.Errorf("StatusFor(%v): %v, want nil", err, s)
		}
	}
}

func wantInside(t *testing.T, err error, trailer metadata.MD, code codes.Code, reason string) {
	t.Helper()
	wantStatus(t, err, code, reason)
	if text := fmt.Sprint(status.Convert(err).Proto(), trailer); strings.Contains(text, "secret") {
		t.Errorf("the client is told %s", text)
	}
	if errorInfo(err).GetMetadata()[grpcmw.MethodMetadata] != "" || retryInfo(err) != nil {
		t.Error("it claims that no handler ran")
	}
	if p := trailer.Get("grpc-retry-pushback-ms"); len(p) != 1 || p[0] != "-1" {
		t.Errorf("pushback %q: a stock client may repeat what was begun", p)
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
