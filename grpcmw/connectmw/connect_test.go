package connectmw_test

import (
	"context"
	"crypto/x509"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"connectrpc.com/connect"
	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/connectmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/rpctest"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type (
	request = testpb.RefundRequest
	reply   = testpb.Reply
)

const (
	refund    = "/shop.v1.Orders/Refund"
	watch     = "/shop.v1.Orders/Watch"
	negotiate = "/shop.v1.Orders/Negotiate"
)

// order is a request for an order; 0 is one that names none.
func order(id int64) *connect.Request[request] {
	return connect.NewRequest(&request{Order: &testpb.Order{Id: id}})
}

// leaseName answers with the name of the lease.
func leaseName(ctx context.Context, _ *connect.Request[request]) (*connect.Response[reply], error) {
	return connect.NewResponse(&reply{Value: locktest.NameOf(ctx)}), nil
}

// serve serves a handler over HTTP/2, which all kinds of streams need.
func serve(t *testing.T, procedure string, h http.Handler) *httptest.Server {
	t.Helper()
	mux := http.NewServeMux()
	mux.Handle(procedure, h)
	return serveAll(t, mux)
}

func serveAll(t *testing.T, mux *http.ServeMux) *httptest.Server {
	t.Helper()
	srv := httptest.NewUnstartedServer(mux)
	srv.EnableHTTP2 = true
	srv.StartTLS()
	t.Cleanup(srv.Close)
	return srv
}

func client(srv *httptest.Server, procedure string, opts ...connect.ClientOption) *connect.Client[request, reply] {
	return connect.NewClient[request, reply](srv.Client(), srv.URL+procedure, opts...)
}

var byOrder = grpcmw.WithMethod(refund, "order:{order.id}")

// reason is that of an error's ErrorInfo.
func reason(t *testing.T, err error) (is string, retry time.Duration) {
	t.Helper()
	e, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return "", 0
	}
	for _, d := range e.Details() {
		m, err := d.Value()
		locktest.OK(t, err)
		switch m := m.(type) {
		case *errdetails.ErrorInfo:
			is = m.GetReason()
		case *errdetails.RetryInfo:
			retry = m.GetRetryDelay().AsDuration()
		}
	}
	return is, retry
}

// A client of gRPC sees no difference between the two servers.
func TestTheTable(t *testing.T) {
	t.Parallel()
	rpctest.Test(t, rpctest.Framework{
		Mount: func(t *testing.T, work rpctest.Work, l *core.Locker, rules ...grpcmw.Option) testpb.OrdersClient {
			t.Helper()
			locks, mux := connectmw.WithLocks(l, rules...), http.NewServeMux()
			mux.Handle(refund, connect.NewUnaryHandler(refund, func(ctx context.Context, req *connect.Request[request]) (*connect.Response[reply], error) {
				return connect.NewResponse(&reply{Value: "reply"}), work(ctx, req.Msg)
			}, locks))
			mux.Handle(watch, connect.NewServerStreamHandler(watch, func(ctx context.Context, req *connect.Request[request], _ *connect.ServerStream[reply]) error {
				return work(ctx, req.Msg)
			}, locks))
			srv := serveAll(t, mux)
			pool := x509.NewCertPool()
			pool.AddCert(srv.Certificate())
			conn, err := grpc.NewClient(srv.Listener.Addr().String(), grpc.WithTransportCredentials(credentials.NewClientTLSFromCert(pool, "example.com")))
			locktest.OK(t, err)
			t.Cleanup(func() { _ = conn.Close() })
			return testpb.NewOrdersClient(conn)
		},
		Status: func(code codes.Code, text string) error {
			return connect.NewError(connect.Code(code), errors.New(text))
		},
	})
}

func TestInterceptorsOutsideFindCoresErrorAndAHandlersOwn(t *testing.T) {
	t.Parallel()
	mine := connect.NewError(connect.CodeResourceExhausted, errors.New("sold out"))
	for want, code := range map[error]connect.Code{core.ErrHeld: connect.CodeAborted, mine: connect.CodeResourceExhausted} {
		locks, other := locktest.Two(t)
		if want == core.ErrHeld { //nolint:errorlint // that very error
			locktest.Hold(t, other, "order:42")
		}
		var seen error
		outside := connect.WithInterceptors(connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
			return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
				res, err := next(ctx, req)
				seen = err
				return res, err
			}
		}))
		h := connect.NewUnaryHandler(refund, func(context.Context, *connect.Request[request]) (*connect.Response[reply], error) {
			return nil, mine
		}, outside, connectmw.WithLocks(locks, byOrder))
		_, err := client(serve(t, refund, h), refund).CallUnary(t.Context(), order(42))
		if connect.CodeOf(err) != code || !errors.Is(seen, want) || code == connect.CodeResourceExhausted && seen != want { //nolint:errorlint // that very error
			t.Errorf("%v; outside: %v, want %v", err, seen, want)
		}
	}
}

// Two Lockers have interceptors of their own. What the inner one says of its refusal stays: it may be sent again, and when.
func TestARefusalOfTheSecondOfTwoInterceptorsStaysOne(t *testing.T) {
	t.Parallel()
	locks, other := locktest.Two(t)
	locktest.Hold(t, other, "order:42")
	onWatch := grpcmw.WithMethod(watch, "order:{order.id}")
	for _, outer := range [][]grpcmw.Option{nil, {grpcmw.WithMethod(refund, "job:outer"), grpcmw.WithMethod(watch, "job:outer")}} {
		two := connect.WithHandlerOptions(connectmw.WithLocks(locktest.Memory(t), outer...), connectmw.WithLocks(locks, byOrder, onWatch))
		_, err := client(serve(t, refund, connect.NewUnaryHandler(refund, leaseName, two)), refund).CallUnary(t.Context(), order(42))
		repeatable(t, err)
		h := connect.NewServerStreamHandler(watch, func(context.Context, *connect.Request[request], *connect.ServerStream[reply]) error { return nil }, two)
		s, err := client(serve(t, watch, h), watch).CallServerStream(t.Context(), order(42))
		locktest.OK(t, err)
		s.Receive()
		repeatable(t, s.Err())
		_ = s.Close()
	}
}

// repeatable fails the test unless err is a refusal with one pushback.
func repeatable(t *testing.T, err error) {
	t.Helper()
	is, retry := reason(t, err)
	e, ok := errors.AsType[*connect.Error](err)
	if !ok || is != grpcmw.ReasonHeld || retry == 0 || e.Meta().Get("Retry-After") != "1" ||
		len(e.Meta().Values("Grpc-Retry-Pushback-Ms")) != 1 || e.Meta().Get("Grpc-Retry-Pushback-Ms") == "-1" {
		t.Errorf("%v: %s, retry in %v, %v", err, is, retry, e.Meta())
	}
}

func TestMethodsWithoutARuleAndClientsAreNotLocked(t *testing.T) {
	t.Parallel()
	locks, other := locktest.Two(t)
	locktest.Hold(t, other, "order:42")
	i, err := connectmw.NewInterceptor(locks, grpcmw.WithMethod(watch, "order:{order.id}"))
	locktest.OK(t, err)
	srv := serve(t, refund, connect.NewUnaryHandler(refund, leaseName, connect.WithInterceptors(i)))
	onClient, err := connectmw.NewInterceptor(locks, byOrder)
	locktest.OK(t, err)
	res, err := client(srv, refund, connect.WithInterceptors(onClient)).CallUnary(t.Context(), order(42))
	if err != nil || res.Msg.GetValue() != "none" {
		t.Errorf("%v, %v", res, err)
	}
}

func TestRulesThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	locks, _ := locktest.Two(t)
	if _, err := connectmw.NewInterceptor(locks, grpcmw.WithMethod(refund, "order:{order.nothing}")); !errors.Is(err, core.ErrInvalid) {
		t.Error(err)
	}
	locktest.Panics(t, "connectmw: ", func() { connectmw.WithLocks(nil) })
}

func TestALostStreamEnds(t *testing.T) {
	t.Parallel()
	locks, _ := locktest.Two(t)
	h := connect.NewBidiStreamHandler(negotiate, func(ctx context.Context, s *connect.BidiStream[request, reply]) error {
		if _, err := s.Receive(); err != nil {
			return err
		}
		if locktest.NameOf(ctx) != "nightly" {
			t.Error("no lock in the stream's context")
			return nil
		}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), core.ErrLost) {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
		return s.Send(&reply{Value: "late"})
	}, connectmw.WithLocks(locks, grpcmw.WithMethod(negotiate, "nightly", core.WithMaxHold(10*time.Millisecond))))
	s := client(serve(t, negotiate, h), negotiate).CallBidiStream(t.Context())
	locktest.OK(t, s.Send(order(42).Msg))
	_ = s.CloseRequest()
	_, err := s.Receive()
	if is, _ := reason(t, err); connect.CodeOf(err) != connect.CodeAborted || is != grpcmw.ReasonLost || errors.Is(err, io.EOF) {
		t.Errorf("%v (%s)", err, is)
	}
	_ = s.CloseResponse()
}
