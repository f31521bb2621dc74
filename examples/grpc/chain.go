package main

import (
	"context"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/auth"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/selector"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// chain is the recipe: the order of a server's interceptors, from the outside in.
//
//  1. Recovery is the outermost, since the lock runs code that can panic too, such as a key
//     function. A panic of the handler passes the lock, which gives the lock back.
//  2. What rejects requests comes before the lock, so that nobody locks an order, or learns
//     that it is locked, who may not touch it. A selector says which methods that is about.
//  3. The lock is last: it is held for the handler, and for nothing else. It needs no
//     selector. What has no rule passes.
func chain(locking *grpcmw.Interceptors) []grpc.ServerOption {
	recovers := recovery.WithRecoveryHandler(func(any) error {
		return status.Error(codes.Internal, "internal error") // the default sends the stack to the client
	})
	users := selector.MatchFunc(func(_ context.Context, call interceptors.CallMeta) bool {
		return call.Service != healthpb.Health_ServiceDesc.ServiceName
	})
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(
			recovery.UnaryServerInterceptor(recovers),
			selector.UnaryServerInterceptor(auth.UnaryServerInterceptor(authenticate), users),
			locking.Unary(),
		),
		grpc.ChainStreamInterceptor(
			recovery.StreamServerInterceptor(recovers),
			selector.StreamServerInterceptor(auth.StreamServerInterceptor(authenticate), users),
			locking.Stream(),
		),
	}
}

// authenticate wants a name, and takes every one: this is an example.
func authenticate(ctx context.Context) (context.Context, error) {
	_, err := auth.AuthFromMD(ctx, "bearer")
	return ctx, err
}
