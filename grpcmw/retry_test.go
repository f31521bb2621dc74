package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

// patient is a client with the interceptors.
func patient(t *testing.T, addr string, opts ...grpcmw.ClientOption) testpb.OrdersClient {
	t.Helper()
	conn, err := grpc.NewClient(addr, grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithDisableRetry(),
		grpc.WithUnaryInterceptor(grpcmw.UnaryClientInterceptor(opts...)),
		grpc.WithStreamInterceptor(grpcmw.StreamClientInterceptor(opts...)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return testpb.NewOrdersClient(conn)
}

// counting counts what the handler of a client's stream gets.
func counting(ss importServer) error {
	n := 0
	for {
		switch _, err := ss.Recv(); {
		case errors.Is(err, io.EOF):
			return ss.SendAndClose(&testpb.Reply{Text: strconv.Itoa(n)})
		case err != nil:
			return err
		}
		n++
	}
}

func TestTheClientGetsThroughWhenTheNameComesFree(t *testing.T) {
	t.Parallel()
	calls := map[string]func(context.Context, testpb.OrdersClient) error{
		"unary": func(ctx context.Context, c testpb.OrdersClient) error {
			_, err := c.Refund(ctx, order())
			return err
		},
		"server stream": func(ctx context.Context, c testpb.OrdersClient) error {
			ss, err := c.Watch(ctx, order())
			if err != nil {
				return err
			}
			return recv(ss)
		},
		"client stream": func(ctx context.Context, c testpb.OrdersClient) error {
			ss, err := c.Import(ctx)
			if err != nil {
				return err
			}
			for range 100 {
				if err := ss.Send(order()); err != nil {
					return err
				}
			}
			reply, err := ss.CloseAndRecv()
			if err == nil && reply.GetText() != "100" {
				return errors.New("the handler got " + reply.GetText() + " messages")
			}
			return err
		},
		"bidi stream": func(ctx context.Context, c testpb.OrdersClient) error {
			ss, err := c.Negotiate(ctx)
			if err != nil {
				return err
			}
			for range 3 {
				if err := errors.Join(ss.Send(order()), recv(ss)); err != nil {
					return err
				}
			}
			if err := ss.CloseSend(); err != nil {
				return err
			}
			if err := recv(ss); !errors.Is(err, io.EOF) {
				return err
			}
			return nil
		},
	}
	for name, call := range calls {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, other := lockers(t)
			release := hold(t, other, "order:42")
			var count atomic.Int32
			_, addr := start(t, &shop{refund: ok, imports: counting,
				watch: func(_ *testpb.RefundRequest, ss watchServer) error { return ss.Send(&testpb.Reply{}) },
				negotiate: func(ss negotiateServer) error {
					for {
						if _, err := ss.Recv(); errors.Is(err, io.EOF) {
							return nil
						} else if err != nil {
							return err
						}
						if err := ss.Send(&testpb.Reply{}); err != nil {
							return err
						}
					}
				},
			}, append(attempts(&count, func(n int32) {
				if n == 3 {
					release()
				}
			}), grpcmw.ServerOptions(locks, grpcmw.WithMethod("/shop.v1.Orders/*", orderKey))...)...)
			if err := call(t.Context(), patient(t, addr)); err != nil {
				t.Error(err)
			}
			if n := count.Load(); n != 3 {
				t.Errorf("%d attempts, want 3", n)
			}
		})
	}
}

func TestTheClientNeverRepeatsWhatMayHaveBeenDone(t *testing.T) {
	t.Parallel()
	foreign := status.New(codes.Aborted, "busy")
	for name, own := range map[string]error{
		"held inside":             &core.HeldError{Name: "stock:7"},
		"unavailable inside":      core.ErrUnavailable,
		"lost inside":             core.ErrLost,
		"another status":          foreign.Err(),
		"another service's":       refusalOf(t, "/shop.v1.Orders/Quote"),
		"a panic of another kind": status.Error(codes.Unavailable, "proxy"),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var ran atomic.Int32
			_, addr := start(t, &shop{
				refund: func(context.Context, *testpb.RefundRequest) (*testpb.Reply, error) {
					ran.Add(1)
					return nil, own
				},
				watch: func(*testpb.RefundRequest, watchServer) error {
					ran.Add(1)
					return own
				},
			}, grpcmw.ServerOptions(newLocker(t, memlock.New()), grpcmw.WithMethod(refund, orderKey), grpcmw.WithMethod(watch, orderKey))...)
			client := patient(t, addr)
			if _, err := client.Refund(t.Context(), order()); err == nil || ran.Load() != 1 {
				t.Errorf("%v, the handler ran %d times", err, ran.Load())
			}
			ss, err := client.Watch(t.Context(), order())
			if err != nil {
				t.Fatal(err)
			}
			if err := recv(ss); err == nil || ran.Load() != 2 {
				t.Errorf("%v, the handlers ran %d times", err, ran.Load())
			}
		})
	}
}

// refusalOf is what a client of another method got, which a handler passes on.
func refusalOf(t *testing.T, method string) error {
	t.Helper()
	locks, other := lockers(t)
	hold(t, other, "order:42")
	client := serve(t, &shop{quote: ok}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(method, orderKey))...)
	_, err := client.Quote(t.Context(), order())
	if !grpcmw.IsHeld(err) {
		t.Fatal(err)
	}
	return err
}

func TestTheClientKeepsToItsContextBudgetAndBuffer(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	hold(t, other, "order:42", core.WithTTL(time.Minute))
	_, addr := start(t, &shop{refund: ok, imports: counting},
		grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey), grpcmw.WithMethod(imports, orderKey))...)
	began := time.Now()
	_, err := patient(t, addr, grpcmw.WithBudget(0)).Refund(t.Context(), order())
	if !grpcmw.IsHeld(err) || time.Since(began) > 10*time.Second {
		t.Errorf("without a budget: %v", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	if _, err := patient(t, addr).Refund(ctx, order()); !grpcmw.IsHeld(err) { // and not the deadline's
		t.Errorf("at the end of its context: %v", err)
	}
	ss, err := patient(t, addr).Import(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	large := order()
	large.Note = strings.Repeat("x", 100<<10)
	for range 10 {
		if err := ss.Send(large); err != nil {
			break
		}
	}
	if err := closeAndRecv(ss); !grpcmw.IsHeld(err) {
		t.Errorf("beyond the buffer: %v", err)
	}
	for name, construct := range map[string]func(){
		"negative": func() { grpcmw.UnaryClientInterceptor(grpcmw.WithBudget(-1)) },
		"nil":      func() { grpcmw.StreamClientInterceptor(nil) },
	} {
		func() {
			defer func() {
				if s, ok := recover().(string); !ok || !strings.HasPrefix(s, "grpcmw: ") {
					t.Errorf("%s: %v", name, s)
				}
			}()
			construct()
		}()
	}
}

func TestTheClientCarriesTheFenceOfItsContext(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, memlock.New())
	got := make(chan string, 1)
	_, addr := start(t, &shop{
		refund: func(ctx context.Context, _ *testpb.RefundRequest) (*testpb.Reply, error) {
			got <- strings.Join(metadata.ValueFromIncomingContext(ctx, grpcmw.FenceMetadata), ",")
			return &testpb.Reply{}, nil
		},
		watch: func(_ *testpb.RefundRequest, ss watchServer) error {
			got <- strings.Join(metadata.ValueFromIncomingContext(ss.Context(), grpcmw.FenceMetadata), ",")
			return nil
		},
	})
	call := func(ctx context.Context, opts ...grpcmw.ClientOption) []string {
		client := patient(t, addr, opts...)
		if _, err := client.Refund(ctx, order()); err != nil {
			return []string{err.Error()}
		}
		seen := []string{<-got}
		ss, err := client.Watch(ctx, order())
		if err != nil {
			t.Fatal(err)
		}
		_ = recv(ss)
		return append(seen, <-got)
	}
	outer := grpcmw.WithFenceOf(func(context.Context, string) string { return "outer" })
	if seen := call(t.Context()); strings.Join(seen, "") != "" {
		t.Errorf("without a lock: %q", seen)
	}
	if seen := call(t.Context(), outer); !strings.Contains(seen[0], "fence") {
		t.Errorf("without its lock: %q", seen)
	}
	err := locks.Do(t.Context(), "outer", func(ctx context.Context) error {
		of, _ := core.FenceFor(ctx, "outer")
		return locks.Do(ctx, "inner", func(ctx context.Context) error {
			in, _ := core.FenceFor(ctx, "inner")
			for _, row := range []struct {
				seen []string
				want string
			}{
				{call(ctx), strconv.FormatUint(in, 10)},
				{call(ctx, outer), strconv.FormatUint(of, 10)},
				{call(metadata.AppendToOutgoingContext(ctx, grpcmw.FenceMetadata, "7")), "7"},
			} {
				if row.seen[0] != row.want || row.seen[1] != row.want {
					t.Errorf("%q, want %s", row.seen, row.want)
				}
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

func TestReasonsOfStatusesAreTold(t *testing.T) {
	t.Parallel()
	is := map[string]func(error) bool{
		"held": grpcmw.IsHeld, "duplicate": grpcmw.IsDuplicate, "lost": grpcmw.IsLost,
		"unavailable": grpcmw.IsUnavailable, "invalid": grpcmw.IsKeyInvalid,
	}
	for own, err := range map[string]error{
		"held": core.ErrHeld, "duplicate": core.ErrDuplicate, "lost": core.ErrLost,
		"unavailable": core.ErrUnavailable, "invalid": core.ErrInvalid, "none": nil, "other": io.EOF,
	} {
		if s := grpcmw.StatusFor(err); s != nil {
			err = s.Err()
		}
		for what, says := range is {
			if says(err) != (what == own) {
				t.Errorf("%s: Is %s: %v", own, what, says(err))
			}
		}
	}
}

// The other server is another region's, a shard, or the next version of the service.
func TestAHandlerThatForwardsItsOwnMethodIsNotRepeated(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	hold(t, other, "order:42")
	_, behind := start(t, &shop{refund: ok}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey))...)
	next := dial(t, behind)
	for what, opts := range map[string][]grpc.ServerOption{
		"with a rule":    grpcmw.ServerOptions(newLocker(t, memlock.New()), grpcmw.WithMethod(refund, orderKey)),
		"without a rule": grpcmw.ServerOptions(newLocker(t, memlock.New()), grpcmw.WithMethod(refund, orderKey), grpcmw.WithSkipper(func(context.Context, string) bool { return true })),
	} {
		var ran atomic.Int32
		_, addr := start(t, &shop{refund: func(ctx context.Context, req *testpb.RefundRequest) (*testpb.Reply, error) {
			ran.Add(1) // a debit
			return next.Refund(ctx, req)
		}}, opts...)
		_, err := patient(t, addr, grpcmw.WithBudget(2*time.Second)).Refund(t.Context(), order())
		if ran.Load() != 1 || !grpcmw.IsHeld(err) {
			t.Errorf("%s: the handler ran %d times: %v", what, ran.Load(), err)
		}
	}
}
