package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/rpctest"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
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

func TestStockClientRetriesWhenPushbackSaysAndSucceeds(t *testing.T) {
	t.Parallel()
	calls := make(map[string]func(context.Context, testpb.OrdersClient) error)
	for what, call := range rpctest.Ways() {
		calls[what] = func(ctx context.Context, c testpb.OrdersClient) error {
			_, err := call(ctx, c, rpctest.Order())
			return err
		}
	}
	calls["client stream"] = func(ctx context.Context, c testpb.OrdersClient) error {
		ss, err := c.Import(ctx)
		if err != nil {
			return err
		}
		for range 3 { // the client keeps them, and sends them again
			if err := ss.Send(rpctest.Order()); err != nil {
				return err
			}
		}
		reply, err := ss.CloseAndRecv()
		if reply.GetText() != "3" {
			t.Errorf("the handler received %q messages", reply.GetText())
		}
		return err
	}
	calls["bidi stream"] = func(ctx context.Context, c testpb.OrdersClient) error {
		ss, err := c.Negotiate(ctx)
		if err != nil {
			return err
		}
		return errors.Join(ss.Send(rpctest.Order()), recv(ss), ss.CloseSend())
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, other := rpctest.Lockers(t)
			release := rpctest.Hold(t, other, "order:42")
			var count atomic.Int32
			opts := attempts(&count, func(n int32) {
				if n == 3 { // the lock comes free when the client tries for the third time
					release()
				}
			})
			opts = append(opts, grpcmw.ServerOptions(locks,
				grpcmw.WithMethod(refund, rpctest.OrderKey), grpcmw.WithMethod(imports, "order:{metadata:x-order|text}"),
				grpcmw.WithMethod(watch, rpctest.OrderKey), grpcmw.WithMethod(negotiate, "order:{metadata:x-order|text}"))...)
			// A header that is set behind the interceptor must not keep the pushback from working.
			opts = append(opts, grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
				if err := grpc.SetHeader(ss.Context(), metadata.Pairs("x-request-id", "1")); err != nil {
					t.Error(err)
				}
				return handler(srv, ss)
			}))
			_, addr := start(t, &shop{
				refund: ok,
				imports: func(ss importServer) error {
					n := 0
					for _, err := ss.Recv(); !errors.Is(err, io.EOF); _, err = ss.Recv() {
						if err != nil {
							return err
						}
						n++
					}
					return ss.SendAndClose(&testpb.Reply{Text: strconv.Itoa(n)})
				},
				watch:     func(_ *testpb.RefundRequest, ss watchServer) error { return ss.Send(&testpb.Reply{}) },
				negotiate: func(ss negotiateServer) error { _, err := ss.Recv(); return errors.Join(err, ss.Send(&testpb.Reply{})) },
			}, opts...)
			client := dial(t, addr, retrying("60s"))

			began := time.Now()
			if err := call(metadata.AppendToOutgoingContext(t.Context(), "x-order", "42"), client); err != nil {
				t.Fatal(err)
			}
			if took := time.Since(began); count.Load() != 3 || took < 400*time.Millisecond || took > 10*time.Second {
				t.Errorf("%d attempts in %s, want 3 with two waits of 250 ms ± 20%%", count.Load(), took)
			}
		})
	}
}

func TestStockClientDoesNotRetryLostWork(t *testing.T) {
	t.Parallel()
	locks, _ := rpctest.Lockers(t)
	var count atomic.Int32
	opts := append(attempts(&count, func(int32) {}), grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, rpctest.OrderKey, rpctest.ShortLived()...))...)
	_, addr := start(t, &shop{refund: func(ctx context.Context, _ *testpb.RefundRequest) (*testpb.Reply, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}, opts...)
	_, err := dial(t, addr, retrying("0.001s")).Refund(t.Context(), rpctest.Order())
	rpctest.WantStatus(t, err, codes.Aborted, grpcmw.ReasonLost)
	if count.Load() != 1 {
		t.Errorf("%d attempts", count.Load())
	}
}
