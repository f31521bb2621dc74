package main

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/selector"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/examples/grpc/orderspb"
	"github.com/holdfast-go/holdfast/grpcmw"
)

// handlers is the service, with what a test does in its place.
type handlers struct {
	orders
	refund func(context.Context) error
	pack   func(context.Context) error // after the first message
}

func (h handlers) Refund(ctx context.Context, _ *orderspb.RefundRequest) (*orderspb.RefundReply, error) {
	return &orderspb.RefundReply{}, h.refund(ctx)
}

func (h handlers) Pack(ss grpc.BidiStreamingServer[orderspb.PackRequest, orderspb.PackReply]) error {
	if _, err := ss.Recv(); err != nil {
		return err
	}
	return errors.Join(h.pack(ss.Context()), ss.Send(&orderspb.PackReply{}))
}

// both calls a unary method and a stream of the service, each about order 42.
var both = map[string]func(context.Context, orderspb.OrdersClient) error{
	"unary":  func(ctx context.Context, c orderspb.OrdersClient) error { return refund(ctx, c, 42, 1) },
	"stream": func(ctx context.Context, c orderspb.OrdersClient) error { _, _, err := pack(ctx, c, 42); return err },
}

// serveWith serves h behind interceptors, until the test ends.
func serveWith(t *testing.T, h handlers, opts []grpc.ServerOption) orderspb.OrdersClient {
	t.Helper()
	lis, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	noError(t, err)
	srv := grpc.NewServer(append(opts, grpc.WaitForHandlers(true))...)
	orderspb.RegisterOrdersServer(srv, h)
	served := make(chan error, 1)
	go func() { served <- srv.Serve(lis) }()
	t.Cleanup(func() { srv.Stop(); <-served })
	conn, err := dial(lis.Addr().String())
	noError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	return orderspb.NewOrdersClient(conn)
}

func newLocker(t *testing.T, d driver.Driver) *core.Locker {
	t.Helper()
	locks, err := core.New(d)
	noError(t, err)
	t.Cleanup(func() {
		if err := locks.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	return locks
}

func newLocking(t *testing.T, locks *core.Locker, opts ...grpcmw.Option) *grpcmw.Interceptors {
	t.Helper()
	locking, err := grpcmw.New(locks, opts...)
	noError(t, err)
	return locking
}

// wantCode also checks that the client learns no more than that.
func wantCode(t *testing.T, err error, want codes.Code) {
	t.Helper()
	if got := status.Code(err); got != want {
		t.Errorf("%v, want %s", err, want)
	}
	if s := status.Convert(err).Message(); strings.Contains(s, "secret") || strings.Contains(s, "goroutine") {
		t.Errorf("the client sees %q", s)
	}
}

func TestPanicOfAHandlerIsRecoveredAndItsLockReleased(t *testing.T) {
	t.Parallel()
	for name, call := range both {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			store := memlock.New()
			boom := func(ctx context.Context) error {
				if x, held := core.FromContext(ctx); !held || x.Name() != "order:42" {
					t.Errorf("the handler runs under %v", x)
				}
				panic("secret")
			}
			client := serveWith(t, handlers{refund: boom, pack: boom}, chain(newLocking(t, newLocker(t, store), grpcmw.WithAnnotations())))
			wantCode(t, call(as(t.Context(), "alice"), client), codes.Internal)
			x, err := newLocker(t, store).Acquire(t.Context(), "order:42", core.WithWait(3*time.Second))
			if err != nil {
				t.Fatalf("not released: %v", err)
			}
			_ = x.Release(t.Context())
		})
	}
}

func TestPanicOfAKeyFunctionIsRecovered(t *testing.T) {
	t.Parallel()
	locking := newLocking(t, newLocker(t, memlock.New()),
		grpcmw.WithMethodFunc("/orders.v1.Orders/Refund", func(context.Context, *orderspb.RefundRequest) (string, error) { panic("secret") }))
	client := serveWith(t, handlers{}, chain(locking))
	wantCode(t, refund(as(t.Context(), "alice"), client, 42, 1), codes.Internal)
}

// counting counts what is asked of the lock service.
type counting struct {
	*memlock.Store
	asked chan struct{}
}

func (c counting) Acquire(ctx context.Context, claim driver.Claim) (driver.Grant, error) {
	c.asked <- struct{}{}
	return c.Store.Acquire(ctx, claim)
}

func (c counting) Wait(ctx context.Context, claim driver.Claim) (driver.Grant, error) {
	c.asked <- struct{}{}
	return c.Store.Wait(ctx, claim)
}

func TestWhoIsRejectedDoesNotReachTheLock(t *testing.T) {
	t.Parallel()
	ok := func(context.Context) error { return nil }
	asked := make(chan struct{}, 10)
	locks := newLocker(t, counting{memlock.New(), asked})
	locking := newLocking(t, locks, grpcmw.WithAnnotations())
	client := serveWith(t, handlers{refund: ok, pack: ok}, chain(locking))
	for name, call := range both {
		wantCode(t, call(t.Context(), client), codes.Unauthenticated)
		if len(asked) != 0 {
			t.Errorf("%s: a request without credentials asked for a lock", name)
		}
		wantCode(t, call(as(t.Context(), "alice"), client), codes.OK)
		if len(asked) != 1 {
			t.Errorf("%s: %d claims for one request", name, len(asked))
		}
		<-asked
	}
}

// The interceptors need no selector. Inside one it works all the same, and what the selector skips has
// no lock.
func TestSelectorAroundTheLockDecidesWhatIsLocked(t *testing.T) {
	t.Parallel()
	locked := make(chan bool, 1)
	note := func(ctx context.Context) error {
		_, held := core.FromContext(ctx)
		locked <- held
		return nil
	}
	locking := newLocking(t, newLocker(t, memlock.New()), grpcmw.WithAnnotations())
	for _, selects := range []string{"Refund", "Pack"} {
		match := selector.MatchFunc(func(_ context.Context, call interceptors.CallMeta) bool { return call.Method == selects })
		client := serveWith(t, handlers{refund: note, pack: note}, []grpc.ServerOption{
			grpc.ChainUnaryInterceptor(selector.UnaryServerInterceptor(locking.Unary(), match)),
			grpc.ChainStreamInterceptor(selector.StreamServerInterceptor(locking.Stream(), match)),
		})
		for name, call := range both {
			wantCode(t, call(t.Context(), client), codes.OK)
			if want := (name == "unary") == (selects == "Refund"); <-locked != want {
				t.Errorf("with a selector for %s, locked of the %s: not %v", selects, name, want)
			}
		}
	}
}

// noError fails the test if there is one.
func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
