package grpcmw_test

import (
	"context"
	"errors"
	"net"
	"testing"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/holdfast-go/holdfast/grpcmw/internal/rpctest"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	refund    = "/shop.v1.Orders/Refund"
	watch     = "/shop.v1.Orders/Watch"
	negotiate = "/shop.v1.Orders/Negotiate"
)

type negotiateServer = grpc.BidiStreamingServer[testpb.RefundRequest, testpb.Reply]

// shop is the service.
type shop struct {
	testpb.UnimplementedOrdersServer
	work      rpctest.Work // of Refund and Watch
	negotiate func(negotiateServer) error
}

func (s *shop) Refund(ctx context.Context, req *testpb.RefundRequest) (*testpb.Reply, error) {
	return &testpb.Reply{Value: "reply"}, s.work(ctx, req)
}

func (s *shop) Watch(req *testpb.RefundRequest, ss grpc.ServerStreamingServer[testpb.Reply]) error {
	return s.work(ss.Context(), req)
}

func (s *shop) Negotiate(ss negotiateServer) error { return s.negotiate(ss) }

// start serves s over loopback TCP until the test ends.
func start(t testing.TB, s *shop, opts ...grpc.ServerOption) (*grpc.Server, string) {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	locktest.OK(t, err)
	srv := grpc.NewServer(append([]grpc.ServerOption{grpc.WaitForHandlers(true)}, opts...)...)
	testpb.RegisterOrdersServer(srv, s)
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
	conn, err := grpc.NewClient(addr, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
	locktest.OK(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return testpb.NewOrdersClient(conn)
}

// serve is start and dial for tests that need no more.
func serve(t testing.TB, s *shop, opts ...grpc.ServerOption) testpb.OrdersClient {
	t.Helper()
	_, addr := start(t, s, opts...)
	return dial(t, addr)
}
