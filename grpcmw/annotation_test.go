package grpcmw_test

import (
	"context"
	"testing"

	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/rpctest"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestAnnotationsAreReadOnlyOnRequest(t *testing.T) {
	t.Parallel()
	guard, err := grpcmw.New(locktest.Memory(t))
	if err != nil || len(guard.Methods()) != 0 {
		t.Errorf("locked: %q, %v", guard.Methods(), err)
	}
}

func TestRuleOfTheServerStandsInPlaceOfAnAnnotation(t *testing.T) {
	t.Parallel()
	listed := grpcmw.WithMethod(refund, "mine:{order.id}")
	byFunc := grpcmw.WithMethodFunc(refund, func(context.Context, *testpb.RefundRequest) (string, error) { return "mine:42", nil })
	for name, opts := range map[string][]grpcmw.Option{
		"listed before":        {listed, grpcmw.WithAnnotations()},
		"listed behind":        {grpcmw.WithAnnotations(), listed},
		"with a key function":  {grpcmw.WithAnnotations(), byFunc},
		"nothing but the list": {listed},
		"the annotation alone": {grpcmw.WithAnnotations()},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := "mine:42"
			if name == "the annotation alone" {
				want = "order:42"
			}
			guard, err := grpcmw.New(locktest.Memory(t), opts...)
			if err != nil {
				t.Fatal(err)
			}
			if got, err := lockedBy(t, guard, refund, rpctest.Order()); got != want {
				t.Errorf("locked %q, %v", got, err)
			}
		})
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
