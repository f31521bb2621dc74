package grpcmw_test

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	refund    = "/shop.v1.Orders/Refund"
	quote     = "/shop.v1.Orders/Quote"
	imports   = "/shop.v1.Orders/Import"
	watch     = "/shop.v1.Orders/Watch"
	negotiate = "/shop.v1.Orders/Negotiate"
)

// shop is the service, one function for each method.
type shop struct {
	testpb.UnimplementedOrdersServer
	refund    func(context.Context, *testpb.RefundRequest) (*testpb.Reply, error)
	quote     func(context.Context, *testpb.RefundRequest) (*testpb.Reply, error)
	imports   func(grpc.ClientStreamingServer[testpb.RefundRequest, testpb.Reply]) error
	watch     func(*testpb.RefundRequest, grpc.ServerStreamingServer[testpb.Reply]) error
	negotiate func(grpc.BidiStreamingServer[testpb.RefundRequest, testpb.Reply]) error
}

func (s *shop) Refund(ctx context.Context, req *testpb.RefundRequest) (*testpb.Reply, error) {
	return s.refund(ctx, req)
}

func (s *shop) Quote(ctx context.Context, req *testpb.RefundRequest) (*testpb.Reply, error) {
	return s.quote(ctx, req)
}

func (s *shop) Import(ss grpc.ClientStreamingServer[testpb.RefundRequest, testpb.Reply]) error {
	return s.imports(ss)
}

func (s *shop) Watch(req *testpb.RefundRequest, ss grpc.ServerStreamingServer[testpb.Reply]) error {
	return s.watch(req, ss)
}

func (s *shop) Negotiate(ss grpc.BidiStreamingServer[testpb.RefundRequest, testpb.Reply]) error {
	return s.negotiate(ss)
}

// start serves s over loopback TCP until the test ends.
func start(t testing.TB, s *shop, opts ...grpc.ServerOption) (*grpc.Server, string) {
	t.Helper()
	return startService(t, func(srv *grpc.Server) { testpb.RegisterOrdersServer(srv, s) }, opts...)
}

func startService(t testing.TB, register func(*grpc.Server), opts ...grpc.ServerOption) (*grpc.Server, string) {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	srv := grpc.NewServer(append([]grpc.ServerOption{grpc.WaitForHandlers(true)}, opts...)...)
	register(srv)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	t.Cleanup(func() {
		srv.Stop()
		if err := <-served; err != nil && !errors.Is(err, grpc.ErrServerStopped) {
			t.Errorf("Serve: %v", err)
		}
	})
	return srv, lis.Addr().String()
}

func dial(t testing.TB, addr string, opts ...grpc.DialOption) testpb.OrdersClient {
	t.Helper()
	return testpb.NewOrdersClient(connect(t, addr, opts...))
}

func connect(t testing.TB, addr string, opts ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient(addr, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

// serve is start and dial for tests that need no more.
func serve(t testing.TB, s *shop, opts ...grpc.ServerOption) testpb.OrdersClient {
	t.Helper()
	_, addr := start(t, s, opts...)
	return dial(t, addr)
}

func newLocker(t testing.TB, d driver.Driver, opts ...core.NewOption) *core.Locker {
	t.Helper()
	l, err := core.New(d, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		if err := l.Close(ctx); err != nil {
			t.Error(err)
		}
	})
	return l
}

// lockers returns two Lockers of one store: the server's, and that of another process.
func lockers(t testing.TB) (locks, other *core.Locker) {
	t.Helper()
	store := memlock.New()
	return newLocker(t, store), newLocker(t, store)
}

// hold takes name until the test ends or release is called.
func hold(t testing.TB, l *core.Locker, name string, opts ...core.Option) (release func()) {
	t.Helper()
	x, err := l.TryAcquire(t.Context(), name, opts...)
	if err != nil {
		t.Fatalf("hold %q: %v", name, err)
	}
	release = func() { _ = x.Release(context.Background()) }
	t.Cleanup(release)
	return release
}

func isHeld(t testing.TB, other *core.Locker, name string) bool {
	t.Helper()
	x, err := other.TryAcquire(t.Context(), name)
	if err == nil {
		_ = x.Release(t.Context())
		return false
	}
	if !errors.Is(err, core.ErrHeld) {
		t.Fatalf("TryAcquire(%q): %v", name, err)
	}
	return true
}

// comesFree waits until name is released.
func comesFree(t testing.TB, other *core.Locker, name string) {
	t.Helper()
	x, err := other.Acquire(t.Context(), name, core.WithWait(3*time.Second))
	if err != nil {
		t.Fatalf("%q was not released: %v", name, err)
	}
	_ = x.Release(t.Context())
}

// order is the request whose key, under orderKey, is "order:42".
func order() *testpb.RefundRequest {
	return &testpb.RefundRequest{Order: &testpb.Order{Id: 42}}
}

const orderKey = "order:{order.id}"

func ok(context.Context, *testpb.RefundRequest) (*testpb.Reply, error) {
	return &testpb.Reply{Text: "ok"}, nil
}

// faulty is a memlock whose Acquire can be replaced.
type faulty struct {
	*memlock.Store
	acquire func(context.Context, driver.Claim) (driver.Grant, error)
}

func (f faulty) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return f.acquire(ctx, c)
}

func (f faulty) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return driver.Poll(ctx, c, f.acquire)
}

func errorInfo(err error) *errdetails.ErrorInfo {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.ErrorInfo); ok {
			return info
		}
	}
	return nil
}

func retryInfo(err error) *errdetails.RetryInfo {
	for _, d := range status.Convert(err).Details() {
		if info, ok := d.(*errdetails.RetryInfo); ok {
			return info
		}
	}
	return nil
}

// wantStatus checks code and reason, "" for no ErrorInfo.
func wantStatus(t testing.TB, err error, code codes.Code, reason string) {
	t.Helper()
	if got := status.Code(err); got != code {
		t.Errorf("code %s, want %s: %v", got, code, err)
	}
	info := errorInfo(err)
	if info.GetReason() != reason {
		t.Errorf("reason %q, want %q", info.GetReason(), reason)
	}
	if info != nil && info.GetDomain() != grpcmw.Domain {
		t.Errorf("domain %q", info.GetDomain())
	}
}

func wantLostCause(t testing.TB, ctx context.Context, name string) {
	t.Helper()
	lost, ok := errors.AsType[*core.LostError](context.Cause(ctx))
	if !ok || lost.Name != name {
		t.Errorf("cause %v, want a *core.LostError of %q", context.Cause(ctx), name)
	}
}

// shortLived makes a lease that is lost soon, unless its work is quicker.
func shortLived() []core.Option {
	return []core.Option{core.WithTTL(300 * time.Millisecond), core.WithoutRenewal()}
}
