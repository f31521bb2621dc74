package main

import (
	"context"
	"strings"
	"testing"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/examples/grpc/orderspb"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheExampleShowsWhatItSays(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	locktest.OK(t, run(t.Context(), &out, chain))
	rest := out.String()
	for _, line := range []string{
		"/orders.v1.Orders/Pack", "/orders.v1.Orders/Refund", "Aborted, LOCK_HELD, RetryInfo ", "InvalidArgument, LOCK_KEY_INVALID",
		"carol  Refund 42", "OK",
	} {
		_, after, found := strings.Cut(rest, line)
		if !found {
			t.Fatalf("%q is not shown, or not in its place:\n%s", line, out.String())
		}
		rest = after
	}
}

func TestTheExampleFailsWithoutTheLock(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	err := run(t.Context(), &out, func(*grpcmw.Interceptors) []grpc.ServerOption {
		return []grpc.ServerOption{grpc.UnaryInterceptor(recovery.UnaryServerInterceptor())}
	})
	if err == nil || !strings.Contains(err.Error(), "bob    Refund 42: OK, want Aborted") {
		t.Errorf("%v", err)
	}
}

// buggy panics where the service works.
type buggy struct{ orders }

func (buggy) Pack(grpc.BidiStreamingServer[orderspb.PackRequest, orderspb.PackReply]) error {
	panic("secret")
}

func TestPanicsAreRecoveredAndLeaveNoLock(t *testing.T) {
	t.Parallel()
	inPack := func(ctx context.Context, c orderspb.OrdersClient) error { _, err := pack(ctx, c); return err }
	inRefund := func(ctx context.Context, c orderspb.OrdersClient) error { return refund(ctx, c, 42, 0) }
	inKey := grpcmw.WithMethodFunc("/orders.v1.Orders/Refund", func(context.Context, *orderspb.RefundRequest) (string, error) { panic("secret") })
	for name, row := range map[string]struct {
		rules grpcmw.Option
		call  func(context.Context, orderspb.OrdersClient) error
	}{
		"of a unary handler":  {grpcmw.WithAnnotations(), inRefund},
		"of a stream":         {grpcmw.WithAnnotations(), inPack},
		"of the key function": {inKey, inRefund},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, client := serving(t, row.rules)
			err := row.call(as(t.Context(), "alice"), client)
			if status.Code(err) != codes.Internal || status.Convert(err).Message() != "internal error" {
				t.Errorf("%v", err)
			}
			locktest.OK(t, locks.Close(t.Context())) // it names what is held
		})
	}
}

// A Locker that is closed answers who reaches it.
func TestWhoIsRejectedDoesNotReachTheLock(t *testing.T) {
	t.Parallel()
	locks, client := serving(t, grpcmw.WithAnnotations())
	locktest.OK(t, locks.Close(t.Context()))
	for user, want := range map[string]codes.Code{"": codes.Unauthenticated, "alice": codes.Unavailable} {
		ctx := t.Context()
		if user != "" {
			ctx = as(ctx, user)
		}
		_, stream := pack(ctx, client)
		for what, err := range map[string]error{"unary": refund(ctx, client, 42, 1), "stream": stream} {
			if status.Code(err) != want {
				t.Errorf("%q, %s: %v, want %s", user, what, err, want)
			}
		}
	}
}

// serving serves the service with its bugs, behind the chain, until the test ends.
func serving(t *testing.T, rules grpcmw.Option) (*core.Locker, orderspb.OrdersClient) {
	t.Helper()
	locks := locktest.Memory(t)
	locking, err := grpcmw.New(locks, rules)
	locktest.OK(t, err)
	address, stop, err := serve(t.Context(), buggy{}, chain(locking))
	locktest.OK(t, err)
	t.Cleanup(stop)
	conn, _, hangUp, err := dial(address)
	locktest.OK(t, err)
	t.Cleanup(hangUp)
	return locks, orderspb.NewOrdersClient(conn)
}
