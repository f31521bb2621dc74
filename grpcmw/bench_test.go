package grpcmw_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/rpctest"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

// bare is what the interceptor is compared with: Do, as quick to refuse.
func bare(b *testing.B, l *core.Locker) *core.Locker {
	b.Helper()
	l, err := l.With(core.WithWait(0))
	if err != nil {
		b.Fatal(err)
	}
	return l
}

func BenchmarkUnary(b *testing.B) {
	locks := rpctest.NewLocker(b, memlock.New())
	bare := bare(b, locks)
	md := metadata.Pairs("x-tenant", "acme")
	req := rpctest.Order()
	handler := func(context.Context, any) (any, error) { return req, nil }
	info := &grpc.UnaryServerInfo{FullMethod: refund}
	guard := func(opts ...grpcmw.Option) func(context.Context) error {
		guard := grpcmw.UnaryServerInterceptor(locks, opts...)
		return func(ctx context.Context) error {
			_, err := guard(ctx, req, info, handler)
			return err
		}
	}
	for name, call := range map[string]func(context.Context) error{
		"bare Do": func(ctx context.Context) error {
			return bare.Do(ctx, "order:42", func(ctx context.Context) error {
				_, err := handler(ctx, req)
				return err
			})
		},
		"field":    guard(grpcmw.WithMethod(refund, rpctest.OrderKey)),
		"metadata": guard(grpcmw.WithMethod(refund, "{metadata:x-tenant|text}:{order.id}")),
		"unlisted": guard(grpcmw.WithMethod(quote, rpctest.OrderKey)),
		"no lock": func(ctx context.Context) error {
			_, err := handler(ctx, req)
			return err
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx, cancel := context.WithCancel(metadata.NewIncomingContext(b.Context(), md)) // every request has its own
				if err := call(ctx); err != nil {
					b.Fatal(err)
				}
				cancel()
			}
		})
	}
}

func BenchmarkStream(b *testing.B) {
	locks := rpctest.NewLocker(b, memlock.New())
	bare := bare(b, locks)
	info := &grpc.StreamServerInfo{FullMethod: watch, IsServerStream: true}
	guard := func(rule grpcmw.Option, handler grpc.StreamHandler) func(grpc.ServerStream) error {
		guard := grpcmw.StreamServerInterceptor(locks, rule)
		return func(ss grpc.ServerStream) error { return guard(nil, ss, info, handler) }
	}
	handler := func(_ any, ss grpc.ServerStream) error {
		if err := ss.RecvMsg(&testpb.RefundRequest{}); err != nil {
			return err
		}
		return ss.SendMsg(nil)
	}
	for name, call := range map[string]func(grpc.ServerStream) error{
		"bare Do": func(ss grpc.ServerStream) error {
			return bare.Do(ss.Context(), "order:42", func(context.Context) error { return handler(nil, ss) })
		},
		"field":  guard(grpcmw.WithMethod(watch, rpctest.OrderKey), handler),
		"method": guard(grpcmw.WithMethod(watch, "{grpc:method}"), handler),
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				ctx, cancel := context.WithCancel(b.Context()) // every request has its own
				if err := call(&serverStream{ctx: ctx}); err != nil {
					b.Fatal(err)
				}
				cancel()
			}
		})
	}
}
