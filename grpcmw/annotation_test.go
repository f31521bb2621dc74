package grpcmw_test

import (
	"context"
	"slices"
	"testing"

	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/rpctest"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestAnnotationsAreReadOnRequestAndAServersOwnRuleStandsInTheirPlace(t *testing.T) {
	t.Parallel()
	listed := grpcmw.WithMethod(refund, "mine:{order.id}")
	byFunc := grpcmw.WithMethodFunc(refund, func(context.Context, *testpb.RefundRequest) (string, error) { return "mine:42", nil })
	for name, row := range map[string]struct {
		opts []grpcmw.Option
		want string
	}{
		"listed before":        {[]grpcmw.Option{listed, grpcmw.WithAnnotations()}, "mine:42"},
		"listed behind":        {[]grpcmw.Option{grpcmw.WithAnnotations(), listed}, "mine:42"},
		"with a key function":  {[]grpcmw.Option{grpcmw.WithAnnotations(), byFunc}, "mine:42"},
		"the annotation alone": {[]grpcmw.Option{grpcmw.WithAnnotations()}, "order:42"},
		"not requested":        {nil, ""},
	} {
		guard, err := grpcmw.New(locktest.Memory(t), row.opts...)
		locktest.OK(t, err)
		if got, err := lockedBy(t, guard, refund, rpctest.Order()); got != row.want || err != nil || slices.Contains(guard.Methods(), refund) != (got != "") {
			t.Errorf("%s: locked %q, %v", name, got, err)
		}
	}
}

// lockedBy calls a unary method and returns the name that was locked, "" for none.
func lockedBy(t *testing.T, guard *grpcmw.Interceptors, method string, req any) (name string, err error) {
	t.Helper()
	_, err = guard.Unary()(t.Context(), req, &grpc.UnaryServerInfo{FullMethod: method}, func(ctx context.Context, _ any) (any, error) {
		if x, locked := core.FromContext(ctx); locked {
			name = x.Name()
		}
		return struct{}{}, nil
	})
	return name, err
}
