package grpcmw_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/tap"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/rpctest"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestTheTable(t *testing.T) {
	t.Parallel()
	rpctest.Test(t, rpctest.Framework{
		Mount: func(t *testing.T, work rpctest.Work, l *core.Locker, rules ...grpcmw.Option) testpb.OrdersClient {
			t.Helper()
			return serve(t, &shop{work: work}, grpcmw.ServerOptions(l, rules...)...)
		},
		Status: status.Error,
	})
}

func TestADeadlineThatPassesIsTold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		silent := memlock.New()
		silent.SetDelay(time.Hour)
		defer silent.SetDelay(0)
		unary := grpcmw.UnaryServerInterceptor(locktest.Locker(t, silent), grpcmw.WithMethod(refund, rpctest.OrderKey, core.WithWait(time.Minute)))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := unary(ctx, rpctest.Order(), &grpc.UnaryServerInfo{FullMethod: refund}, nothing)
		rpctest.WantStatus(t, err, codes.DeadlineExceeded, "")
	})
}

func TestAReasonOfAnotherServiceIsNoneOfOurs(t *testing.T) {
	t.Parallel()
	s, err := status.New(codes.Aborted, "own").WithDetails(&errdetails.ErrorInfo{Reason: grpcmw.ReasonHeld, Domain: "shop"})
	locktest.OK(t, err)
	if got := grpcmw.ReasonOf(s.Err()); got != "" {
		t.Error(got)
	}
}

// What is the program's fault, and not the request's, is Internal, and logged once.
func TestAFaultOfTheProgramIsInternalAndLoggedOnce(t *testing.T) {
	t.Parallel()
	byFunc := grpcmw.WithMethodFunc(refund, func(context.Context, *testpb.RefundRequest) (string, error) { return "order:42", nil })
	for name, row := range map[string]struct {
		rule grpcmw.Option
		req  any
		says string
		code codes.Code
	}{
		"no request":                      {grpcmw.WithMethod(refund, rpctest.OrderKey), nil, "not of the type", codes.Internal},
		"bytes":                           {grpcmw.WithMethod(refund, rpctest.OrderKey), "raw", "not of the type", codes.Internal},
		"another message":                 {grpcmw.WithMethod(refund, rpctest.OrderKey), &testpb.Reply{}, "not of the type", codes.Internal},
		"another, in a function":          {byFunc, &testpb.Reply{}, "not of the type", codes.Internal},
		"dedup of what the caller holds":  {grpcmw.WithMethod(refund, rpctest.OrderKey, core.WithDedup(time.Hour)), rpctest.Order(), "WithDedup", codes.Internal},
		"a request's fault is not logged": {grpcmw.WithMethod(refund, rpctest.OrderKey), &testpb.RefundRequest{}, "", codes.InvalidArgument},
	} {
		var logged bytes.Buffer
		locks := locktest.Memory(t)
		unary := grpcmw.UnaryServerInterceptor(locks, row.rule, grpcmw.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
		for range 3 {
			err := locks.Do(t.Context(), "order:42", func(ctx context.Context) error {
				_, err := unary(ctx, row.req, &grpc.UnaryServerInfo{FullMethod: refund}, func(context.Context, any) (any, error) {
					t.Errorf("%s: the handler ran", name)
					return nil, nil
				})
				return err
			})
			isFault := row.code == codes.Internal // no client is told of what
			if status.Code(err) != row.code || isFault && strings.Contains(err.Error(), "{") ||
				row.says == "WithDedup" && !errors.Is(err, core.ErrInvalid) {
				t.Errorf("%s: %v; interceptors outside want core's error", name, err)
			}
		}
		text := logged.String()
		if want := min(1, len(row.says)); strings.Count(text, "level=ERROR") != want || strings.Count(text, "\n") != want ||
			!strings.Contains(text, row.says) || want == 1 && !strings.Contains(text, "method="+refund) {
			t.Errorf("%s: logged %q", name, text)
		}
	}
}

func TestTheLockOutlivesWhateverEndsItsRequest(t *testing.T) {
	t.Parallel()
	for why, c := range map[string]struct {
		end  func(leave func(), srv *grpc.Server)
		code codes.Code
	}{
		"the client leaves": {func(leave func(), _ *grpc.Server) { leave() }, codes.Canceled},
		"the server stops":  {func(_ func(), srv *grpc.Server) { srv.Stop() }, codes.Unavailable}, // which waits for handlers
	} {
		for what, call := range rpctest.Ways() {
			t.Run(why+", "+what, func(t *testing.T) {
				t.Parallel()
				locks, other := locktest.Two(t)
				running, letGo := make(chan context.Context, 1), make(chan struct{})
				srv, addr := start(t, &shop{work: func(ctx context.Context, _ *testpb.RefundRequest) error {
					running <- ctx
					<-letGo
					return ctx.Err()
				}}, grpcmw.ServerOptions(locks, rpctest.Locked(rpctest.OrderKey)...)...)
				client := dial(t, addr)
				ctx, leave := context.WithCancel(t.Context())
				defer leave()
				answered, ended := make(chan error, 1), make(chan struct{})
				go func() { _, err := call(ctx, client, rpctest.Order()); answered <- err }()
				work := <-running
				go func() { c.end(leave, srv); close(ended) }()
				rpctest.WantStatus(t, <-answered, c.code, "")
				<-work.Done()
				if cause := context.Cause(work); !errors.Is(cause, context.Canceled) || errors.Is(cause, core.ErrLost) || locktest.IsFree(t, other, "order:42") {
					t.Errorf("released under running work, cause %v", cause)
				}
				close(letGo)
				if <-ended; c.code == codes.Unavailable && !locktest.IsFree(t, other, "order:42") {
					t.Error("a Stop that waits for handlers returned before the release")
				}
				locktest.ComesFree(t, other, "order:42")
			})
		}
	}
}

func TestFieldsOfEveryKindNameTheLock(t *testing.T) {
	t.Parallel()
	files := annotated(t, nil)
	full := thing(t, files, `id: -42 number: 18446744073709551615 line_item: 10 name: "a:b {c}%" urgent: true channel: PHONE
		parent { parent { id: 2 } } account: 5 revision: 0 alias: " \000é"`)
	for key, want := range map[string]string{
		"{id}": "-42", "{number}": "18446744073709551615", "{line_item}": "10", "{name}": "a%3Ab%20%7Bc%7D%25", "{urgent}": "true", "{channel}": "2",
		"{parent.parent.id}": "2",
		"{account}":          "5",       // in a oneof
		"{revision}":         "0",       // optional and set
		"{alias}":            "%20%00é", // as it is
	} {
		guard, err := grpcmw.NewFrom(files, locktest.Memory(t), grpcmw.WithMethod(touch, key))
		locktest.OK(t, err)
		if name, err := lockedBy(t, guard, touch, full); err != nil || name != want {
			t.Errorf("%s: locked %q, %v, want %q", key, name, err, want)
		}
		_, err = lockedBy(t, guard, touch, thing(t, files, `alias: ""`))
		if rpctest.WantStatus(t, err, codes.InvalidArgument, grpcmw.ReasonKeyInvalid); !strings.Contains(err.Error(), "is missing") {
			t.Errorf("%s of nothing: %v", key, err)
		}
	}
}

// retrying is a stock client that retries ABORTED, after a minute unless the server says
// otherwise.
func retrying(backoff string) grpc.DialOption {
	return grpc.WithDefaultServiceConfig(`{"methodConfig": [{"name": [{"service": "shop.v1.Orders"}], "retryPolicy": {
		"maxAttempts": 4, "initialBackoff": "` + backoff + `", "maxBackoff": "` + backoff + `", "backoffMultiplier": 1,
		"retryableStatusCodes": ["ABORTED"]}}]}`)
}

// Two Lockers, or two packages of a program, may have interceptors of their own. A stock client ignores a pushback that is there twice.
func TestStockClientRetriesWhenPushbackSaysAndSucceeds(t *testing.T) {
	t.Parallel()
	for name, call := range rpctest.Ways() {
		memory := locktest.Memory(t)
		for _, outside := range [][]grpc.ServerOption{nil, grpcmw.ServerOptions(memory), grpcmw.ServerOptions(memory, rpctest.Locked("job:outer")...)} {
			t.Run(name, func(t *testing.T) {
				t.Parallel()
				locks, other := locktest.Two(t)
				release := locktest.Hold(t, other, "order:42")
				var count atomic.Int32
				counted := grpc.InTapHandle(func(ctx context.Context, _ *tap.Info) (context.Context, error) { // of each attempt that reaches the server
					if count.Add(1) == 3 {
						release()
					}
					return ctx, nil
				})
				opts := append([]grpc.ServerOption{counted}, outside...)
				opts = append(opts, grpcmw.ServerOptions(locks, rpctest.Locked(rpctest.OrderKey)...)...)
				// A header that is set behind the interceptor must not keep the pushback from working.
				opts = append(opts, grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
					if err := grpc.SetHeader(ss.Context(), metadata.Pairs("x-request-id", "1")); err != nil {
						t.Error(err)
					}
					return handler(srv, ss)
				}))
				_, addr := start(t, &shop{work: func(context.Context, *testpb.RefundRequest) error { return nil }}, opts...)
				if _, err := call(t.Context(), dial(t, addr, retrying("60s")), rpctest.Order()); err != nil || count.Load() != 3 {
					t.Errorf("%d attempts, want 3: %v", count.Load(), err) // a client that does not heed the pushback comes in a minute
				}
			})
		}
	}
}
