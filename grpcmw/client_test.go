package grpcmw_test

import (
	"context"
	"sync/atomic"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

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

// attempts calls each with the number of every attempt that reaches the server.
func attempts(count *atomic.Int32, each func(n int32)) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			each(count.Add(1))
			return handler(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			each(count.Add(1))
			return handler(srv, ss)
		}),
	}
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
				opts := attempts(&count, func(n int32) {
					if n == 3 { // the lock comes free when the client tries for the third time
						release()
					}
				})
				opts = append(opts, outside...)
				opts = append(opts, grpcmw.ServerOptions(locks, rpctest.Locked(rpctest.OrderKey)...)...)
				// A header that is set behind the interceptor must not keep the pushback from working.
				opts = append(opts, grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
					if err := grpc.SetHeader(ss.Context(), metadata.Pairs("x-request-id", "1")); err != nil {
						t.Error(err)
					}
					return handler(srv, ss)
				}))
				_, addr := start(t, handled(func(context.Context, *testpb.RefundRequest) error { return nil }), opts...)
				if _, err := call(t.Context(), dial(t, addr, retrying("60s")), rpctest.Order()); err != nil || count.Load() != 3 {
					t.Errorf("%d attempts, want 3: %v", count.Load(), err) // a client that does not heed the pushback comes in a minute
				}
			})
		}
	}
}
