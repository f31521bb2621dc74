package grpcmw_test

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/tap"

	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/rpctest"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// retrying is a stock client that retries ABORTED, after a minute unless the server says
// otherwise.
func retrying(backoff string) grpc.DialOption {
	return grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{"service": "shop.v1.Orders"}], "retryPolicy": {
		"maxAttempts": 4, "initialBackoff": "` + backoff + `", "maxBackoff": "` + backoff + `", "backoffMultiplier": 1,
		"retryableStatusCodes": ["ABORTED"]}}]}`)
}

// Two Lockers, or two packages of a program, may have interceptors of their own. A stock client ignores a pushback that is there twice.
func TestStockClientRetriesWhenPushbackSaysAndSucceeds(t *testing.T) {
	t.Parallel()
	for name, call := range rpctest.Ways() {
		memory := locktest.Memory(t)
		for _, outside := range [][]grpc.ServerOption{nil, grpcmw.ServerOptions(memory), grpcmw.ServerOptions(memory, rpctest.Locked("job:outer")...)} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				locks, other := locktest.Two(t)
				release := locktest.Hold(t, other, "order:42")
				var count atomic.Int32
				counted := grpc.InTapHandle(func(ctx context.Context, _ *tap.Info) (context.Context, error) { // of each attempt that reaches the server
					if count.Add(1) == 3 {
						release()
					}
					return ctx, nil
				})
				opts := append([]grpc.ServerOption{counted}, outside...)
				opts = append(opts, grpcmw.ServerOptions(locks, rpctest.Locked(rpctest.OrderKey)...)...)
				// A header that is set behind the interceptor must not keep the pushback from working.
				opts = append(opts, grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
					if err := grpc.SetHeader(ss.Context(), metadata.Pairs("x-request-id", "1")); err != nil {
						t.Error(err)
					}
					return handler(srv, ss)
				}))
				_, addr := start(t, &shop{work: func(context.Context, *testpb.RefundRequest) error { return nil }}, opts...)
				if _, err := call(t.Context(), dial(t, addr, retrying("60s")), rpctest.Order()); err != nil || count.Load() != 3 {
					t.Errorf("%d attempts, want 3: %v", count.Load(), err) // a client that does not heed the pushback comes in a minute
				}
			})
		}
	}
}
