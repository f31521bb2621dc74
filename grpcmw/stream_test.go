package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

type (
	importServer    = grpc.ClientStreamingServer[testpb.RefundRequest, testpb.Reply]
	watchServer     = grpc.ServerStreamingServer[testpb.Reply]
	negotiateServer = grpc.BidiStreamingServer[testpb.RefundRequest, testpb.Reply]
	negotiateClient = grpc.BidiStreamingClient[testpb.RefundRequest, testpb.Reply]
)

// open starts a Negotiate stream that ends with the test.
func open(t *testing.T, client testpb.OrdersClient) negotiateClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	ss, err := client.Negotiate(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return ss
}

func send(t *testing.T, ss negotiateClient, req *testpb.RefundRequest) {
	t.Helper()
	if err := ss.Send(req); err != nil {
		t.Fatal(err)
	}
}

// Its messages may name different things, and the handler would work on all of them under the lock of the first one.
func TestAKeyOfTheMessagesOfAClientsStreamIsRefusedAtTheStart(t *testing.T) {
	t.Parallel()
	byFunc := func(context.Context, *testpb.RefundRequest) (string, error) { return "a", nil }
	for _, method := range []string{imports, negotiate} {
		for what, rule := range map[string]grpcmw.Option{
			"a field":                  grpcmw.WithMethod(method, orderKey),
			"one of several templates": grpcmw.WithMethod(method, "tenant:{metadata:x-tenant|text} "+orderKey),
			"a key function":           grpcmw.WithMethodFunc(method, byFunc),
		} {
			_, err := grpcmw.New(newLocker(t, memlock.New()), rule)
			if !errors.Is(err, core.ErrInvalid) || !strings.Contains(err.Error(), method) || !strings.Contains(err.Error(), "{metadata:x|text}") {
				t.Errorf("%s, %s: %v", method, what, err)
			}
		}
	}
}

func TestServerStreamIsLockedBeforeItsHandler(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	full := transfer(42, "a")
	full.Note = "note"
	client := serve(t, &shop{watch: func(req *testpb.RefundRequest, ss watchServer) error {
		if x, locked := core.FromContext(ss.Context()); !locked || x.Name() != "order:42" || !isHeld(t, other, "order:42") {
			t.Errorf("lease %v", x)
		}
		if !proto.Equal(req, full) {
			t.Errorf("the handler got %v", req)
		}
		return ss.Send(&testpb.Reply{Text: "ok"})
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(watch, orderKey))...)
	ss, err := client.Watch(t.Context(), full)
	if err != nil {
		t.Fatal(err)
	}
	if reply, err := ss.Recv(); err != nil || reply.GetText() != "ok" {
		t.Errorf("%v, %v", reply, err)
	}
	if _, err := ss.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
	comesFree(t, other, "order:42")
}

func TestRefusedStreamAnswersByTheTable(t *testing.T) {
	t.Parallel()
	for name, row := range refusals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := newLocker(t, row.driver)
			client := serve(t, &shop{watch: func(*testpb.RefundRequest, watchServer) error {
				t.Error("the handler ran")
				return nil
			}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(watch, orderKey,
				core.WithDedup(time.Hour), core.WithDedupScope("scope")))...)
			row.prepare(t, locks)
			ss, err := client.Watch(t.Context(), row.req)
			if err != nil {
				t.Fatal(err)
			}
			_, err = ss.Recv()
			wantRefusal(t, err, ss.Trailer(), row.code, row.reason, row.pushed)
		})
	}
}

// watching opens a stream of Watch as no generated client does: it has sent nothing.
func watching(t *testing.T, addr string) grpc.ClientStream {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	ss, err := connect(t, addr).NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, watch)
	if err != nil {
		t.Fatal(err)
	}
	return ss
}

func TestAServerStreamWithoutItsOneMessageDoesNotRun(t *testing.T) {
	t.Parallel()
	locks, _ := lockers(t)
	began := make(chan struct{})
	tell := grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		began <- struct{}{}
		return handler(srv, ss)
	})
	_, addr := start(t, &shop{watch: func(*testpb.RefundRequest, watchServer) error {
		t.Error("the handler ran")
		return nil
	}}, append([]grpc.ServerOption{tell}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(watch, orderKey))...)...)
	for what, end := range map[string]func(grpc.ClientStream) error{
		"none at all": func(ss grpc.ClientStream) error { return ss.CloseSend() },
		"two of them": func(ss grpc.ClientStream) error {
			return errors.Join(ss.SendMsg(order()), ss.SendMsg(order()), ss.CloseSend())
		},
	} {
		ss := watching(t, addr)
		<-began
		if err := end(ss); err != nil {
			t.Fatal(err)
		}
		if err := ss.RecvMsg(&testpb.Reply{}); status.Code(err) == codes.OK || errors.Is(err, io.EOF) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestStreamCanceledBeforeItsFirstMessageTakesNoLock(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, faulty{memlock.New(), func(context.Context, driver.Claim) (driver.Grant, error) {
		t.Error("asked for the lock")
		return driver.Grant{}, driver.ErrNotSent
	}})
	waiting, ended := make(chan struct{}), make(chan error, 1)
	tell := grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
		close(waiting)
		err := handler(srv, ss)
		ended <- err
		return err
	})
	_, addr := start(t, &shop{}, append([]grpc.ServerOption{tell}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(watch, orderKey))...)...)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := connect(t, addr).NewStream(ctx, &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, watch); err != nil {
		t.Fatal(err)
	}
	<-waiting
	cancel()
	wantStatus(t, <-ended, codes.Canceled, "")
}

func TestKeyWithoutRequestFieldLocksBeforeTheHandler(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	release := hold(t, other, "tenant:acme")
	client := serve(t, &shop{negotiate: func(ss negotiateServer) error {
		x, locked := core.FromContext(ss.Context())
		if !locked || x.Name() != "tenant:acme" || !isHeld(t, other, "tenant:acme") {
			t.Errorf("lease %v", x)
		}
		return errors.Join(ss.SendHeader(metadata.Pairs("x", "y")), ss.Send(&testpb.Reply{})) // without any message
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(negotiate, "tenant:{metadata:x-tenant|text}"))...)
	call := func(ctx context.Context) (metadata.MD, error) {
		ss, err := client.Negotiate(ctx)
		if err != nil {
			t.Fatal(err)
		}
		_, err = ss.Recv()
		return ss.Trailer(), err
	}
	_, err := call(t.Context())
	wantStatus(t, err, codes.InvalidArgument, grpcmw.ReasonKeyInvalid)
	ctx := metadata.AppendToOutgoingContext(t.Context(), "x-tenant", "acme")
	trailer, err := call(ctx)
	wantRefusal(t, err, trailer, codes.Aborted, grpcmw.ReasonHeld, true)
	release()
	if _, err := call(ctx); err != nil {
		t.Error(err)
	}
	comesFree(t, other, "tenant:acme")
}

func TestErrorsOfAStreamHandlersInnerLockAreAnsweredByTheTable(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	hold(t, other, "taken")
	client := serve(t, &shop{watch: func(_ *testpb.RefundRequest, ss watchServer) error {
		_, err := locks.TryAcquire(ss.Context(), "taken")
		return err
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(watch, orderKey))...)
	ss, err := client.Watch(t.Context(), order())
	if err != nil {
		t.Fatal(err)
	}
	_, err = ss.Recv()
	wantInside(t, err, ss.Trailer(), codes.Aborted, grpcmw.ReasonHeld)
}

func TestStreamHandlerMayReenterItsOwnLock(t *testing.T) {
	t.Parallel()
	locks, _ := lockers(t)
	client := serve(t, &shop{watch: func(_ *testpb.RefundRequest, ss watchServer) error {
		return locks.Do(ss.Context(), "order:42", func(ctx context.Context) error { return ctx.Err() }, core.WithWait(0))
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(watch, orderKey))...)
	ss, err := client.Watch(t.Context(), order())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ss.Recv(); !errors.Is(err, io.EOF) {
		t.Error(err)
	}
}

func TestDedupOfAStreamCompletesWhenItsHandlerReturnsNil(t *testing.T) {
	t.Parallel()
	locks, _ := lockers(t)
	results := make(chan error, 3)
	results <- status.Error(codes.Internal, "own")
	results <- nil
	client := serve(t, &shop{watch: func(*testpb.RefundRequest, watchServer) error { return <-results }},
		grpcmw.ServerOptions(locks, grpcmw.WithMethod(watch, orderKey, core.WithDedup(time.Hour)))...)
	for _, want := range []codes.Code{codes.Internal, codes.OK, codes.AlreadyExists} {
		ss, err := client.Watch(t.Context(), order())
		if err != nil {
			t.Fatal(err)
		}
		if _, err = ss.Recv(); errors.Is(err, io.EOF) {
			err = nil
		}
		if status.Code(err) != want {
			t.Errorf("%v, want %s", err, want)
		}
	}
}

func TestPanicOfAStreamHandlerPassesAndReleases(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	values := make(chan any, 1)
	boom := &struct{ int }{1}
	contexts := make(chan context.Context, 1)
	client := serve(t, &shop{watch: func(_ *testpb.RefundRequest, ss watchServer) error {
		contexts <- ss.Context()
		panic(boom)
	}}, append(recoverer(values), grpcmw.ServerOptions(locks, grpcmw.WithMethod(watch, orderKey))...)...)
	ss, err := client.Watch(t.Context(), order())
	if err != nil {
		t.Fatal(err)
	}
	_, err = ss.Recv()
	wantStatus(t, err, codes.Internal, "")
	if v := <-values; v != boom {
		t.Errorf("panic value %v", v)
	}
	<-(<-contexts).Done()
	comesFree(t, other, "order:42")
}

func TestGoexitOfAStreamHandlerReleases(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	ctx, cancel := context.WithCancel(t.Context())
	client := serve(t, &shop{watch: func(*testpb.RefundRequest, watchServer) error {
		defer cancel() // gRPC sends no status then
		runtime.Goexit()
		return nil
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(watch, orderKey))...)
	ss, err := client.Watch(ctx, order())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := ss.Recv(); err == nil {
		t.Error("no error")
	}
	comesFree(t, other, "order:42")
}

func TestStreamLockOutlivesACallerThatIsGone(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	running, let := make(chan context.Context), make(chan struct{})
	client := serve(t, &shop{watch: func(_ *testpb.RefundRequest, ss watchServer) error {
		running <- ss.Context()
		<-let
		return nil
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(watch, orderKey))...)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if _, err := client.Watch(ctx, order()); err != nil {
		t.Fatal(err)
	}
	work := <-running
	cancel()
	<-work.Done()
	if cause := context.Cause(work); !errors.Is(cause, context.Canceled) {
		t.Errorf("cause %v", cause)
	}
	if !isHeld(t, other, "order:42") {
		t.Error("released under running work")
	}
	close(let)
	comesFree(t, other, "order:42")
}
