// Package recipe has kratos hold locks around operations, over gRPC and over HTTP. Copy Middleware.
//
//	rules, err := grpcmw.New(locks, grpcmw.WithMethod("/shop.v1.Orders/Refund", "order:{order.id}"))
//	…
//	http.NewServer(http.Middleware(recovery.Recovery(), recipe.Middleware(rules)))
//	grpc.NewServer(grpc.Middleware(recovery.Recovery(), recipe.Middleware(rules)))
//
// The rules are those of package grpcmw, by the operation that kratos' generated code names, with keys from the
// fields of the request message; annotations in the .proto file work too. Clients get kratos' own errors: over HTTP a held lock
// is 409 with the reason LOCK_HELD, and Retry-After.
//
// The lock is the last middleware: recovery, tracing, authentication stand before it. Streams have no middleware in
// kratos: give grpcmw.StreamServerInterceptor to grpc.StreamInterceptor.
//
// Routes that are written by hand, Server.Route, are net/http with gorilla/mux: take the recipe for gorilla.
//
//	srv.Route("/").POST("/orders/{id}/pay", pay, gorilla.PathValues, httpmw.Lock(locks, "order:{id|int}"))
package recipe

import (
	"context"
	"math"
	"strconv"

	"github.com/go-kratos/kratos/v2/middleware"
	"github.com/go-kratos/kratos/v2/transport"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/grpcmw"
)

// Middleware holds the lock of each operation that has a rule.
func Middleware(rules *grpcmw.Interceptors) middleware.Middleware {
	unary := rules.Unary()
	return func(next middleware.Handler) middleware.Handler {
		return func(ctx context.Context, req any) (any, error) {
			tr, ok := transport.FromServerContext(ctx)
			if !ok {
				return next(ctx, req)
			}
			reply, err := unary(ctx, req, &grpc.UnaryServerInfo{FullMethod: tr.Operation()}, grpc.UnaryHandler(next))
			if tr.Kind() == transport.KindHTTP {
				retryAfter(tr.ReplyHeader(), err)
			}
			return reply, err
		}
	}
}

// retryAfter sets for clients of HTTP what those of gRPC read in the status.
func retryAfter(header transport.Header, err error) {
	for _, d := range status.Convert(err).Details() {
		if r, ok := d.(*errdetails.RetryInfo); ok {
			header.Set("Retry-After", strconv.Itoa(int(math.Ceil(r.GetRetryDelay().AsDuration().Seconds()))))
		}
	}
}
