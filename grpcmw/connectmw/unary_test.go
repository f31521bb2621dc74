package connectmw_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/connectmw"
)

var byOrder = grpcmw.WithMethod(refund, "order:{order.id}")

// reason is that of an error's ErrorInfo.
func reason(t *testing.T, err error) (is string, retry time.Duration) {
	t.Helper()
	e, ok := errors.AsType[*connect.Error](err)
	if !ok {
		return "", 0
	}
	for _, d := range e.Details() {
		m, err := d.Value()
		if err != nil {
			t.Fatal(err)
		}
		switch m := m.(type) {
		case *errdetails.ErrorInfo:
			is = m.GetReason()
		case *errdetails.RetryInfo:
			retry = m.GetRetryDelay().AsDuration()
		}
	}
	return is, retry
}

func TestACallHoldsTheLockOfItsMessage(t *testing.T) {
	t.Parallel()
	for protocol, opts := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			locks, other, _ := lockers(t)
			h := connect.NewUnaryHandler(refund, func(ctx context.Context, req *connect.Request[request]) (*connect.Response[reply], error) {
				if isFree(t, other, "order:42") {
					t.Error("free while the handler runs")
				}
				return leaseName(ctx, req)
			}, connectmw.WithLocks(locks, byOrder))
			res, err := client(serve(t, refund, h), refund, opts...).CallUnary(t.Context(), order(42))
			if err != nil || res.Msg.GetText() != "order:42" {
				t.Fatalf("%v, %v", res, err)
			}
			if !isFree(t, other, "order:42") {
				t.Error("held after the call")
			}
		})
	}
}

func TestARefusalIsToldByItsCodeAndReason(t *testing.T) {
	t.Parallel()
	for what, test := range map[string]struct {
		id     int64
		before func(t *testing.T, locks, other *core.Locker, down func(bool))
		code   connect.Code
		reason string
	}{
		"Held": {42, func(t *testing.T, _, other *core.Locker, _ func(bool)) { t.Helper(); hold(t, other, "order:42") },
			connect.CodeAborted, grpcmw.ReasonHeld},
		"KeyMissing": {0, func(*testing.T, *core.Locker, *core.Locker, func(bool)) {},
			connect.CodeInvalidArgument, grpcmw.ReasonKeyInvalid},
		"Unavailable": {42, func(_ *testing.T, _, _ *core.Locker, down func(bool)) { down(true) },
			connect.CodeUnavailable, grpcmw.ReasonUnavailable},
		"Closed": {42, func(t *testing.T, locks, _ *core.Locker, _ func(bool)) { t.Helper(); _ = locks.Close(t.Context()) },
			connect.CodeUnavailable, grpcmw.ReasonUnavailable},
	} {
		for protocol, opts := range protocols {
			t.Run(what+protocol, func(t *testing.T) {
				t.Parallel()
				locks, other, store := lockers(t)
				h := connect.NewUnaryHandler(refund, func(context.Context, *connect.Request[request]) (*connect.Response[reply], error) {
					t.Error("it ran")
					return nil, nil
				}, connectmw.WithLocks(locks, byOrder))
				c := client(serve(t, refund, h), refund, opts...)
				test.before(t, locks, other, store.SetDown)
				_, err := c.CallUnary(t.Context(), order(test.id))
				store.SetDown(false)
				is, retry := reason(t, err)
				if connect.CodeOf(err) != test.code || is != test.reason {
					t.Errorf("%v (%s), want %v (%s)", err, is, test.code, test.reason)
				}
				if what == "Held" && retry <= 0 {
					t.Error("no time for a retry")
				}
				if strings.Contains(err.Error(), "order:42") || strings.Contains(err.Error(), "worker-1") {
					t.Errorf("the client is told too much: %v", err)
				}
			})
		}
	}
}

func TestAHeldLockTellsHTTPClientsWhenToRetry(t *testing.T) {
	t.Parallel()
	locks, other, _ := lockers(t)
	hold(t, other, "order:42")
	c := client(serve(t, refund, connect.NewUnaryHandler(refund, leaseName, connectmw.WithLocks(locks, byOrder))), refund)
	_, err := c.CallUnary(t.Context(), order(42))
	e, ok := errors.AsType[*connect.Error](err)
	if !ok || e.Meta().Get("Retry-After") != "1" || e.Meta().Get("Grpc-Retry-Pushback-Ms") == "" {
		t.Errorf("%v: %v", err, e.Meta())
	}
}

func TestADuplicateIsNotRunAgain(t *testing.T) {
	t.Parallel()
	locks, _, _ := lockers(t)
	once := connectmw.WithLocks(locks, grpcmw.WithMethod(refund, "order:{order.id}", core.WithDedup(time.Hour)))
	c := client(serve(t, refund, connect.NewUnaryHandler(refund, leaseName, once)), refund)
	if _, err := c.CallUnary(t.Context(), order(42)); err != nil {
		t.Fatal(err)
	}
	_, err := c.CallUnary(t.Context(), order(42))
	if is, _ := reason(t, err); connect.CodeOf(err) != connect.CodeAlreadyExists || is != grpcmw.ReasonDuplicate {
		t.Errorf("%v (%s)", err, is)
	}
}

func TestALossIsToldWhateverTheHandlerReturns(t *testing.T) {
	t.Parallel()
	locks, _, _ := lockers(t)
	short := connectmw.WithLocks(locks, grpcmw.WithMethod(refund, "order:{order.id}", core.WithMaxHold(10*time.Millisecond)))
	h := connect.NewUnaryHandler(refund, func(ctx context.Context, _ *connect.Request[request]) (*connect.Response[reply], error) {
		<-ctx.Done()
		return nil, connect.NewError(connect.CodeDataLoss, context.Cause(ctx))
	}, short)
	_, err := client(serve(t, refund, h), refund).CallUnary(t.Context(), order(42))
	if is, _ := reason(t, err); connect.CodeOf(err) != connect.CodeAborted || is != grpcmw.ReasonLost {
		t.Errorf("%v (%s)", err, is)
	}
}

func TestAHandlersErrorIsItsOwn(t *testing.T) {
	t.Parallel()
	locks, _, _ := lockers(t)
	var seen error
	outside := connect.WithInterceptors(connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			res, err := next(ctx, req)
			seen = err
			return res, err
		}
	}))
	mine := connect.NewError(connect.CodeResourceExhausted, errors.New("sold out"))
	h := connect.NewUnaryHandler(refund, func(context.Context, *connect.Request[request]) (*connect.Response[reply], error) {
		return nil, mine
	}, outside, connectmw.WithLocks(locks, byOrder))
	_, err := client(serve(t, refund, h), refund).CallUnary(t.Context(), order(42))
	if connect.CodeOf(err) != connect.CodeResourceExhausted || seen != error(mine) { //nolint:errorlint // that very error
		t.Errorf("%v; outside: %v", err, seen)
	}
}

// several is an error as validators have it: a slice, and a struct with one inside.
type several []string

func (several) Error() string { return "sold out" }

type wrapped struct{ error }

func TestAHandlersErrorMayBeOfATypeThatCannotBeCompared(t *testing.T) {
	t.Parallel()
	locks, _, _ := lockers(t)
	for _, own := range []error{several{"order.id"}, wrapped{several{"order.id"}}} {
		for _, rule := range [][]grpcmw.Option{{byOrder, grpcmw.WithMethod(watch, "order:{order.id}")}, nil} {
			unary := connect.NewUnaryHandler(refund, func(context.Context, *connect.Request[request]) (*connect.Response[reply], error) {
				return nil, own
			}, connectmw.WithLocks(locks, rule...))
			_, err := client(serve(t, refund, unary), refund).CallUnary(t.Context(), order(42))
			if connect.CodeOf(err) != connect.CodeUnknown || !strings.HasSuffix(err.Error(), "sold out") {
				t.Errorf("%T became %v", own, err)
			}
			stream := connect.NewServerStreamHandler(watch, func(context.Context, *connect.Request[request], *connect.ServerStream[reply]) error {
				return own
			}, connectmw.WithLocks(locks, rule...))
			s, err := client(serve(t, watch, stream), watch).CallServerStream(t.Context(), order(42))
			if err != nil {
				t.Fatal(err)
			}
			if s.Receive() || connect.CodeOf(s.Err()) != connect.CodeUnknown || !strings.HasSuffix(s.Err().Error(), "sold out") {
				t.Errorf("%T on a stream became %v", own, s.Err())
			}
			_ = s.Close()
		}
	}
}

// connect.NewError(code, err) is how handlers of Connect return any error, and sends its text.
func TestAnErrorOfAnInnerLockTellsNothing(t *testing.T) {
	t.Parallel()
	held := &core.HeldError{Name: "stock:secret", Label: "host-secret"}
	for own, code := range map[error]connect.Code{
		held: connect.CodeAborted, connect.NewError(connect.CodeInternal, held): connect.CodeAborted,
	} {
		for _, rule := range [][]grpcmw.Option{{byOrder}, nil} {
			locks, _, _ := lockers(t)
			h := connect.NewUnaryHandler(refund, func(context.Context, *connect.Request[request]) (*connect.Response[reply], error) {
				return nil, own
			}, connectmw.WithLocks(locks, rule...))
			_, err := client(serve(t, refund, h), refund).CallUnary(t.Context(), order(42))
			if connect.CodeOf(err) != code || strings.Contains(err.Error(), "secret") {
				t.Errorf("%v became %v", own, err)
			}
		}
	}
}

func TestInterceptorsOutsideFindCoresError(t *testing.T) {
	t.Parallel()
	locks, other, _ := lockers(t)
	hold(t, other, "order:42")
	var seen error
	outside := connect.WithInterceptors(connect.UnaryInterceptorFunc(func(next connect.UnaryFunc) connect.UnaryFunc {
		return func(ctx context.Context, req connect.AnyRequest) (connect.AnyResponse, error) {
			res, err := next(ctx, req)
			seen = err
			return res, err
		}
	}))
	c := client(serve(t, refund, connect.NewUnaryHandler(refund, leaseName, outside, connectmw.WithLocks(locks, byOrder))), refund)
	if _, err := c.CallUnary(t.Context(), order(42)); err == nil || !errors.Is(seen, core.ErrHeld) {
		t.Errorf("%v; outside: %v", err, seen)
	}
}

func TestHeadersNameLocksAndCarryFences(t *testing.T) {
	t.Parallel()
	locks, _, _ := lockers(t)
	h := connect.NewUnaryHandler(refund, func(ctx context.Context, req *connect.Request[request]) (*connect.Response[reply], error) {
		if f, err := fence.Parse(metadata.ValueFromIncomingContext(ctx, fence.Header)...); err != nil || f != 7 {
			t.Errorf("fence %d, %v", f, err)
		}
		return leaseName(ctx, req)
	}, connectmw.WithLocks(locks, grpcmw.WithMethod(refund, "tenant:{metadata:x-tenant|text}")))
	req := order(1)
	req.Header().Set("X-Tenant", "acme")
	req.Header().Set(fence.Header, "7")
	res, err := client(serve(t, refund, h), refund).CallUnary(t.Context(), req)
	if err != nil || res.Msg.GetText() != "tenant:acme" {
		t.Errorf("%v, %v", res, err)
	}
}

func TestMethodsWithoutARuleAndClientsAreNotLocked(t *testing.T) {
	t.Parallel()
	locks, other, _ := lockers(t)
	hold(t, other, "order:42")
	i, err := connectmw.NewInterceptor(locks, grpcmw.WithMethod(watch, "order:{order.id}"))
	if err != nil {
		t.Fatal(err)
	}
	srv := serve(t, refund, connect.NewUnaryHandler(refund, leaseName, connect.WithInterceptors(i)))
	onClient, err := connectmw.NewInterceptor(locks, byOrder)
	if err != nil {
		t.Fatal(err)
	}
	res, err := client(srv, refund, connect.WithInterceptors(onClient)).CallUnary(t.Context(), order(42))
	if err != nil || res.Msg.GetText() != "none" {
		t.Errorf("%v, %v", res, err)
	}
}

func TestRulesThatCannotWorkAreRefused(t *testing.T) {
	t.Parallel()
	locks, _, _ := lockers(t)
	if _, err := connectmw.NewInterceptor(locks, grpcmw.WithMethod(refund, "order:{order.nothing}")); !errors.Is(err, core.ErrInvalid) {
		t.Error(err)
	}
	defer func() {
		if s, _ := recover().(string); !strings.HasPrefix(s, "connectmw: ") {
			t.Errorf("%q", s)
		}
	}()
	connectmw.WithLocks(nil)
}
