package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/rpctest"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

const reserve = "/shop.annotated.v1.Stock/Reserve"

// stock is the annotated service. Each handler asks check which name is locked.
type stock struct {
	testpb.UnimplementedStockServer
	check func(context.Context)
}

func (s *stock) Reserve(ctx context.Context, req *testpb.RefundRequest) (*testpb.Reply, error) {
	s.check(ctx)
	return ok(ctx, req)
}

func (s *stock) Look(ctx context.Context, req *testpb.RefundRequest) (*testpb.Reply, error) {
	s.check(ctx)
	return ok(ctx, req)
}

func (s *stock) Import(ss importServer) error {
	for {
		if _, err := ss.Recv(); errors.Is(err, io.EOF) {
			return ss.SendAndClose(&testpb.Reply{})
		} else if err != nil {
			return err
		}
		s.check(ss.Context())
	}
}

func (s *stock) Watch(_ *testpb.RefundRequest, ss watchServer) error {
	s.check(ss.Context())
	return ss.Send(&testpb.Reply{})
}

func (s *stock) Negotiate(ss negotiateServer) error {
	s.check(ss.Context())
	return ss.Send(&testpb.Reply{})
}

func TestAnnotatedMethodsOfEveryKindAreLocked(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		want string // "" for no lock
		call func(context.Context, testpb.StockClient) error
	}{
		"unary": {"order:42", func(ctx context.Context, c testpb.StockClient) error {
			_, err := c.Reserve(ctx, rpctest.Order())
			return err
		}},
		"client stream, by metadata": {"order:42", func(ctx context.Context, c testpb.StockClient) error {
			ss, err := c.Import(metadata.AppendToOutgoingContext(ctx, "x-order", "42"))
			return errors.Join(err, ss.Send(rpctest.Order()), closeAndRecv(ss))
		}},
		"server stream": {"order:42", func(ctx context.Context, c testpb.StockClient) error {
			ss, err := c.Watch(ctx, rpctest.Order())
			return errors.Join(err, recv(ss))
		}},
		"bidi stream, by metadata": {"tenant:acme", func(ctx context.Context, c testpb.StockClient) error {
			ss, err := c.Negotiate(metadata.AppendToOutgoingContext(ctx, "x-tenant", "acme"))
			return errors.Join(err, recv(ss))
		}},
		"not annotated": {"", func(ctx context.Context, c testpb.StockClient) error {
			_, err := c.Look(ctx, rpctest.Order())
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, other := rpctest.Lockers(t)
			ran := 0
			service := &stock{check: func(ctx context.Context) {
				ran++
				x, locked := core.FromContext(ctx)
				if locked != (row.want != "") || locked && (x.Name() != row.want || !rpctest.IsHeld(t, other, row.want)) {
					t.Errorf("lease %v, want that of %q", x, row.want)
				}
			}}
			_, addr := startService(t, func(srv *grpc.Server) { testpb.RegisterStockServer(srv, service) },
				grpcmw.ServerOptions(locks, grpcmw.WithAnnotations())...)
			err := row.call(t.Context(), testpb.NewStockClient(connect(t, addr)))
			if err != nil || ran != 1 {
				t.Errorf("%v, and the handler ran %d times", err, ran)
			}
		})
	}
}

func recv(ss interface{ Recv() (*testpb.Reply, error) }) error {
	_, err := ss.Recv()
	return err
}

func closeAndRecv(ss interface{ CloseAndRecv() (*testpb.Reply, error) }) error {
	_, err := ss.CloseAndRecv()
	return err
}

func TestMethodsListsWhatIsLocked(t *testing.T) {
	t.Parallel()
	const stock = "/shop.annotated.v1.Stock/"
	guard, err := grpcmw.New(rpctest.NewLocker(t, memlock.New()), grpcmw.WithMethod(watch, rpctest.OrderKey), grpcmw.WithAnnotations())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{stock + "Import", stock + "Negotiate", stock + "Reserve", stock + "Ship", stock + "Watch", watch}
	if got := guard.Methods(); !slices.Equal(got, want) {
		t.Errorf("locked: %q, want %q", got, want)
	}
}

func TestAnnotationsAreReadOnlyOnRequest(t *testing.T) {
	t.Parallel()
	guard, err := grpcmw.New(rpctest.NewLocker(t, memlock.New()))
	if err != nil || len(guard.Methods()) != 0 {
		t.Errorf("locked: %q, %v", guard.Methods(), err)
	}
}

func TestRuleOfTheServerStandsInPlaceOfAnAnnotation(t *testing.T) {
	t.Parallel()
	listed := grpcmw.WithMethod(reserve, "mine:{order.id}")
	byFunc := grpcmw.WithMethodFunc(reserve, func(context.Context, *testpb.RefundRequest) (string, error) { return "mine:42", nil })
	for name, opts := range map[string][]grpcmw.Option{
		"listed before":        {listed, grpcmw.WithAnnotations()},
		"listed behind":        {grpcmw.WithAnnotations(), listed},
		"with a key function":  {grpcmw.WithAnnotations(), byFunc},
		"nothing but the list": {listed},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, err := lockedBy(t, opts, reserve, rpctest.Order()); got != "mine:42" {
				t.Errorf("locked %q, %v", got, err)
			}
		})
	}
}

// lockedBy calls a unary method through interceptors with opts and returns the name that
// was locked, "" for none.
func lockedBy(t *testing.T, opts []grpcmw.Option, method string, req any) (name string, err error) {
	t.Helper()
	guard, err := grpcmw.New(rpctest.NewLocker(t, memlock.New()), opts...)
	if err != nil {
		t.Fatal(err)
	}
	return lockedIn(t, guard, method, req)
}

func lockedIn(t *testing.T, guard *grpcmw.Interceptors, method string, req any) (name string, err error) {
	t.Helper()
	_, err = guard.Unary()(t.Context(), req, &grpc.UnaryServerInfo{FullMethod: method}, func(ctx context.Context, _ any) (any, error) {
		if x, locked := core.FromContext(ctx); locked {
			name = x.Name()
		}
		return struct{}{}, nil
	})
	return name, err
}
