package grpcmw_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

// What is the program's fault, and not the request's, is Internal, and logged.

// logLines collects what is logged as text.
type logLines struct {
	mu  sync.Mutex // protects buf
	buf bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.Write(p)
}

func (l *logLines) option() grpcmw.Option {
	return grpcmw.WithLogger(slog.New(slog.NewTextHandler(l, nil)))
}

// wantOnce checks that there is one line, of an error, with all of parts in it.
func (l *logLines) wantOnce(t *testing.T, parts ...string) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	text := l.buf.String()
	if strings.Count(text, "\n") != 1 {
		t.Errorf("logged, not once: %q", text)
	}
	for _, part := range append(parts, "level=ERROR") {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
}

func byFunc(method string, opts ...core.Option) grpcmw.Option {
	return grpcmw.WithMethodFunc(method, func(context.Context, *testpb.RefundRequest) (string, error) { return "order:42", nil }, opts...)
}

func TestRequestOfAnotherTypeIsInternalAndLoggedOnce(t *testing.T) {
	t.Parallel()
	for name, rule := range map[string]grpcmw.Option{"template": grpcmw.WithMethod(refund, orderKey), "function": byFunc(refund)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logged logLines
			door := grpcmw.UnaryServerInterceptor(newLocker(t, memlock.New()), logged.option(), rule)
			for _, req := range []any{nil, "raw", &testpb.Reply{}} {
				_, err := door(t.Context(), req, &grpc.UnaryServerInfo{FullMethod: refund}, func(context.Context, any) (any, error) {
					t.Error("the handler ran")
					return nil, nil
				})
				wantStatus(t, err, codes.Internal, "")
			}
			logged.wantOnce(t, "method="+refund, "not of the type")
		})
	}
}

func TestDedupOnANameThatTheCallerHoldsIsInternalAndLoggedOnce(t *testing.T) {
	t.Parallel()
	dedup := core.WithDedup(time.Hour)
	for name, rules := range map[string][]grpcmw.Option{
		"template": {grpcmw.WithMethod(refund, orderKey, dedup), grpcmw.WithMethod(watch, orderKey, dedup)},
		"function": {byFunc(refund, dedup), byFunc(watch, dedup)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := lockers(t)
			for method, call := range map[string]func(context.Context, *grpcmw.Interceptors) error{
				refund: func(ctx context.Context, door *grpcmw.Interceptors) error {
					_, err := door.Unary()(ctx, order(), &grpc.UnaryServerInfo{FullMethod: refund}, nil)
					return err
				},
				watch: func(ctx context.Context, door *grpcmw.Interceptors) error {
					return door.Stream()(nil, &serverStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: watch}, func(_ any, ss grpc.ServerStream) error {
						return ss.RecvMsg(&testpb.RefundRequest{})
					})
				},
			} {
				var logged logLines
				door, err := grpcmw.New(locks, append(rules, logged.option())...)
				if err != nil {
					t.Fatal(err)
				}
				for range 3 {
					err := locks.Do(t.Context(), "order:42", func(ctx context.Context) error { return call(ctx, door) })
					wantStatus(t, err, codes.Internal, "")
					if !errors.Is(err, core.ErrInvalid) {
						t.Errorf("%s: interceptors outside do not see core's error: %v", method, err)
					}
				}
				logged.wantOnce(t, "method="+method, "WithDedup")
			}
		})
	}
}

func TestFaultOfARequestIsNotLogged(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	hold(t, other, "order:42")
	var logged logLines
	client := serve(t, &shop{}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey), logged.option())...)
	for _, req := range []*testpb.RefundRequest{{}, order()} { // without a key, held
		if _, err := client.Refund(t.Context(), req); err == nil {
			t.Error("no error")
		}
	}
	if logged.buf.Len() > 0 {
		t.Errorf("logged %q", logged.buf.String())
	}
}

// The door looks at names of key functions itself: with a rule that differed from core's, a
// name would be the program's fault, or pass unseen.
func TestNamesThatTheDoorTakesAreThoseThatCoreTakes(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, memlock.New())
	names := []string{"", "a", "a%3Ab", strings.Repeat("x", 200), strings.Repeat("x", 201), strings.Repeat("ü", 100),
		strings.Repeat("ü", 100) + "x", "a\xff", "\xed\xa0\x80", "a\ufffdb", "a\u00adb", "a\ufeffb", "a\u200bb"}
	for r := range rune(0x3100) {
		names = append(names, "a"+string(r)+"b")
	}
	var name string
	door := grpcmw.UnaryServerInterceptor(locks, grpcmw.WithMethodFunc(refund,
		func(context.Context, *testpb.RefundRequest) (string, error) { return name, nil }))
	handler := func(context.Context, any) (any, error) { return &testpb.Reply{}, nil }
	for _, name = range names {
		err := locks.Do(t.Context(), name, func(context.Context) error { return nil })
		_, got := door(t.Context(), order(), &grpc.UnaryServerInfo{FullMethod: refund}, handler)
		if want := map[bool]codes.Code{true: codes.OK, false: codes.InvalidArgument}[err == nil]; status.Code(got) != want {
			t.Errorf("%q: the door says %v, core %v", name, got, err)
		}
	}
}
