package connectmw

import (
	"context"
	"fmt"

	"connectrpc.com/connect"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
	"github.com/holdfast-go/holdfast/grpcmw"
)

// Interceptor holds the lock of each method that has a rule around its handler. Make it with
// [NewInterceptor], once, when the program starts.
type Interceptor struct{ rules *grpcmw.Interceptors }

var _ connect.Interceptor = (*Interceptor)(nil)

// NewInterceptor returns an interceptor for handlers. It checks all rules; one that cannot work is a
// [core.ErrInvalid] that names the method. Clients that have it are not changed.
func NewInterceptor(l *core.Locker, opts ...grpcmw.Option) (*Interceptor, error) {
	rules, err := grpcmw.New(l, opts...)
	if err != nil {
		return nil, fmt.Errorf("connectmw: %w", err)
	}
	return &Interceptor{rules}, nil
}

// WithLocks is [NewInterceptor] as an option of a handler. It panics on rules that cannot work.
func WithLocks(l *core.Locker, opts ...grpcmw.Option) connect.HandlerOption {
	return connect.WithInterceptors(adapter.Must(NewInterceptor(l, opts...)))
}

// Methods returns the procedures that are locked, sorted.
func (i *Interceptor) Methods() []string { return i.rules.Methods() }

// WrapUnary implements connect.Interceptor.
func (i *Interceptor) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc {
	return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
		if req.Spec().IsClient {
			return next(ctx, req)
		}
		var resp connect.AnyResponse
		handler := func(ctx context.Context, _ any) (_ any, err error) {
			resp, err = next(ctx, req)
			return nil, asOwn(err)
		}
		info := &grpc.UnaryServerInfo{FullMethod: req.Spec().Procedure}
		if _, err := i.rules.Unary()(incoming(ctx, req.Header()), req.Any(), info, handler); err != nil {
			return nil, translate(err)
		}
		return resp, nil
	}
}

// WrapStreamingHandler implements connect.Interceptor.
func (i *Interceptor) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		handler := func(_ any, locked grpc.ServerStream) error { //nolint:contextcheck,nolintlint // the lock's is made of ctx; the linter sees it or not
			return asOwn(next(locked.Context(), &lockedConn{conn, locked})) //nolint:contextcheck,nolintlint // as above
		}
		info := &grpc.StreamServerInfo{FullMethod: conn.Spec().Procedure}
		return translate(i.rules.Stream()(nil, &stream{ctx: incoming(ctx, conn.RequestHeader()), conn: conn}, info, handler))
	}
}

// WrapStreamingClient implements connect.Interceptor. It changes nothing.
func (*Interceptor) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}
