package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"runtime"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

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

func TestClientStreamIsLockedFromItsFirstMessage(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	client := serve(t, &shop{imports: func(ss importServer) error {
		early := context.WithValue(ss.Context(), contextKey{}, "child") // captured before the lock
		if _, locked := core.FromContext(early); locked || isHeld(t, other, "order:42") {
			t.Error("locked before the first message")
		}
		for n := 0; ; n++ {
			if _, err := ss.Recv(); errors.Is(err, io.EOF) {
				return ss.SendAndClose(&testpb.Reply{Text: "ok"})
			} else if err != nil {
				return err
			}
			x, locked := core.FromContext(early)
			if !locked || x.Name() != "order:42" || x.Err() != nil || !isHeld(t, other, "order:42") {
				t.Errorf("message %d: lease %v", n, x)
			}
		}
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(imports, orderKey))...)

	ss, err := client.Import(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	for _, req := range []*testpb.RefundRequest{order(), {Note: "more"}} {
		if err := ss.Send(req); err != nil {
			t.Fatal(err)
		}
	}
	if reply, err := ss.CloseAndRecv(); err != nil || reply.GetText() != "ok" {
		t.Errorf("%v, %v", reply, err)
	}
	comesFree(t, other, "order:42")
}

type contextKey struct{}

func TestServerStreamIsLockedBeforeItsHandler(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	client := serve(t, &shop{watch: func(_ *testpb.RefundRequest, ss watchServer) error {
		if x, locked := core.FromContext(ss.Context()); !locked || x.Name() != "order:42" || !isHeld(t, other, "order:42") {
			t.Errorf("lease %v", x)
		}
		return ss.Send(&testpb.Reply{Text: "ok"})
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(watch, orderKey))...)
	ss, err := client.Watch(t.Context(), order())
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

func TestRefusalWinsOverWhateverTheHandlerReturns(t *testing.T) {
	t.Parallel()
	for name, swallow := range map[string]error{"nil": nil, "EOF": io.EOF, "own status": status.Error(codes.DataLoss, "own")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, other := lockers(t)
			hold(t, other, "order:42")
			client := serve(t, &shop{negotiate: func(ss negotiateServer) error {
				early := ss.Context()
				for range 2 { // the second one must not take another message, nor another name
					_, err := ss.Recv()
					wantStatus(t, err, codes.Aborted, grpcmw.ReasonHeld)
					if !errors.Is(err, core.ErrHeld) {
						t.Errorf("the handler cannot tell: %v", err)
					}
				}
				wantStatus(t, ss.Send(&testpb.Reply{}), codes.Aborted, grpcmw.ReasonHeld)
				wantStatus(t, ss.SendHeader(metadata.Pairs("x", "y")), codes.Aborted, grpcmw.ReasonHeld)
				<-early.Done()
				if !errors.Is(context.Cause(early), core.ErrHeld) {
					t.Errorf("cause %v", context.Cause(early))
				}
				return swallow
			}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(negotiate, orderKey))...)
			ss := open(t, client)
			send(t, ss, order())
			_ = ss.Send(&testpb.RefundRequest{Order: &testpb.Order{Id: 7}}) // the stream may be over by then
			_, err := ss.Recv()
			wantRefusal(t, err, ss.Trailer(), codes.Aborted, grpcmw.ReasonHeld, true)
		})
	}
}

func TestStreamWithoutMessageHasNoKey(t *testing.T) {
	t.Parallel()
	locks, _ := lockers(t)
	client := serve(t, &shop{imports: func(ss importServer) error {
		if _, err := ss.Recv(); !errors.Is(err, io.EOF) {
			return err
		}
		t.Error("the handler sees an empty stream and goes on without the lock")
		return ss.SendAndClose(&testpb.Reply{})
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(imports, orderKey))...)
	ss, err := client.Import(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	_, err = ss.CloseAndRecv()
	wantStatus(t, err, codes.InvalidArgument, grpcmw.ReasonKeyInvalid)
}

func TestStreamCanceledBeforeItsFirstMessageTakesNoLock(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, faulty{memlock.New(), func(context.Context, driver.Claim) (driver.Grant, error) {
		t.Error("asked for the lock")
		return driver.Grant{}, driver.ErrNotSent
	}})
	waiting, received := make(chan struct{}), make(chan error, 1)
	client := serve(t, &shop{negotiate: func(ss negotiateServer) error {
		close(waiting)
		_, err := ss.Recv()
		received <- err
		return err
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(negotiate, orderKey))...)
	ctx, cancel := context.WithCancel(t.Context())
	if _, err := client.Negotiate(ctx); err != nil {
		t.Fatal(err)
	}
	<-waiting
	cancel()
	wantStatus(t, <-received, codes.Canceled, "")
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
		return ss.Send(&testpb.Reply{}) // without any message
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

func TestHandlerThatNeverReceivesTakesNoLock(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	hold(t, other, "order:42")
	client := serve(t, &shop{negotiate: func(negotiateServer) error {
		return status.Error(codes.Unimplemented, "own")
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(negotiate, orderKey))...)
	ss := open(t, client)
	_ = ss.Send(order()) // the stream may be over by then
	_, err := ss.Recv()
	wantStatus(t, err, codes.Unimplemented, "")
}

func TestNothingIsSentBeforeTheLockIsHeld(t *testing.T) {
	t.Parallel()
	locks, _ := lockers(t)
	tried := make(chan struct{})
	client := serve(t, &shop{negotiate: func(ss negotiateServer) error {
		early := ss.Context()
		for what, err := range map[string]error{
			"SendMsg":         ss.Send(&testpb.Reply{Text: "early"}),
			"SendHeader":      ss.SendHeader(metadata.Pairs("early", "1")),
			"grpc.SendHeader": grpc.SendHeader(early, metadata.Pairs("early", "2")),
		} {
			if status.Code(err) != codes.Internal {
				t.Errorf("%s: %v", what, err)
			}
		}
		if err := errors.Join(ss.SetHeader(metadata.Pairs("kept", "1")), grpc.SetHeader(early, metadata.Pairs("kept", "2"))); err != nil {
			t.Error(err)
		}
		close(tried)
		if _, err := ss.Recv(); err != nil {
			return err
		}
		if err := errors.Join(grpc.SetHeader(early, metadata.Pairs("kept", "3")), ss.SendHeader(metadata.Pairs("kept", "4"))); err != nil {
			t.Error(err)
		}
		return ss.Send(&testpb.Reply{Text: "late"})
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(negotiate, orderKey))...)
	ss := open(t, client)
	<-tried
	send(t, ss, order())
	header, err := ss.Header()
	if err != nil {
		t.Fatal(err)
	}
	if header.Get("early") != nil || len(header.Get("kept")) != 4 {
		t.Errorf("header %v", header)
	}
	if reply, err := ss.Recv(); err != nil || reply.GetText() != "late" {
		t.Errorf("%v, %v", reply, err)
	}
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
	client := serve(t, &shop{negotiate: func(ss negotiateServer) error {
		contexts <- ss.Context()
		if _, err := ss.Recv(); err != nil {
			return err
		}
		panic(boom)
	}}, append(recoverer(values), grpcmw.ServerOptions(locks, grpcmw.WithMethod(negotiate, orderKey))...)...)
	ss := open(t, client)
	send(t, ss, order())
	_, err := ss.Recv()
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
