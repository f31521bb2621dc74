package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

// refusal is a row of the outcome table in which no handler runs.
type refusal struct {
	driver  driver.Driver
	prepare func(*testing.T, *core.Locker)
	req     *testpb.RefundRequest
	code    codes.Code
	reason  string
	pushed  bool
}

// refusals returns the rows, with drivers of their own.
func refusals() map[string]refusal {
	nothing := func(*testing.T, *core.Locker) {}
	unreachable := faulty{memlock.New(), func(context.Context, driver.Claim) (driver.Grant, error) {
		return driver.Grant{}, fmt.Errorf("dial redis-secret:6379: %w", driver.ErrNotSent)
	}}
	return map[string]refusal{
		"held": {
			memlock.New(), func(t *testing.T, l *core.Locker) {
				hold(t, l, "order:42", core.WithLabel("host-secret"))
			}, order(), codes.Aborted, grpcmw.ReasonHeld, true,
		},
		"key missing": {memlock.New(), nothing, &testpb.RefundRequest{}, codes.InvalidArgument, grpcmw.ReasonKeyInvalid, false},
		"unavailable": {unreachable, nothing, order(), codes.Unavailable, grpcmw.ReasonUnavailable, false},
		"closed": {
			memlock.New(), func(t *testing.T, l *core.Locker) {
				if err := l.Close(t.Context()); err != nil {
					t.Fatal(err)
				}
			}, order(), codes.Unavailable, grpcmw.ReasonUnavailable, false,
		},
		"draining": {
			memlock.New(), func(t *testing.T, l *core.Locker) {
				if err := l.Drain(t.Context()); err != nil {
					t.Fatal(err)
				}
			}, order(), codes.Unavailable, grpcmw.ReasonUnavailable, false,
		},
		"done": {
			memlock.New(), func(t *testing.T, l *core.Locker) {
				err := l.Do(t.Context(), "order:42", func(context.Context) error { return nil },
					core.WithDedup(time.Hour), core.WithDedupScope("scope"), core.WithLabel("host-secret"))
				if err != nil {
					t.Fatal(err)
				}
			}, order(), codes.AlreadyExists, grpcmw.ReasonDuplicate, false,
		},
	}
}

func TestRefusedUnaryAnswersByTheTable(t *testing.T) {
	t.Parallel()
	for name, row := range refusals() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks := newLocker(t, row.driver)
			client := serve(t, &shop{refund: func(context.Context, *testpb.RefundRequest) (*testpb.Reply, error) {
				t.Error("the handler ran")
				return nil, nil
			}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey,
				core.WithDedup(time.Hour), core.WithDedupScope("scope")))...)
			row.prepare(t, locks)

			var trailer metadata.MD
			_, err := client.Refund(t.Context(), row.req, grpc.Trailer(&trailer))
			wantRefusal(t, err, trailer, row.code, row.reason, row.pushed)
			stops := name == "closed" || name == "draining"
			if text := status.Convert(err).Message(); strings.Contains(text, "about to stop") != stops {
				t.Errorf("%q", text)
			}
		})
	}
}

func wantRefusal(t *testing.T, err error, trailer metadata.MD, code codes.Code, reason string, pushed bool) {
	t.Helper()
	wantStatus(t, err, code, reason)
	for _, secret := range []string{"order:42", "secret", "6379"} {
		if text := fmt.Sprint(status.Convert(err).Proto(), trailer); strings.Contains(text, secret) {
			t.Errorf("%q reached the client: %s", secret, text)
		}
	}
	if errorInfo(err).GetMetadata()[grpcmw.MethodMetadata] == "" {
		t.Error("the refusal does not name its method")
	}
	wait := retryInfo(err).GetRetryDelay().AsDuration()
	if (pushed || code == codes.Unavailable) != (wait > 0) || wait > time.Second {
		t.Errorf("RetryInfo %s", wait)
	}
	pushback := trailer.Get("grpc-retry-pushback-ms")
	if !pushed && len(pushback) > 0 || pushed && len(pushback) != 1 {
		t.Fatalf("pushback %q", pushback)
	}
	if pushed {
		if ms, err := strconv.Atoi(pushback[0]); err != nil || ms < 200 || ms > 300 {
			t.Errorf("pushback %q, want 250 ± 20%%", pushback)
		}
	}
}

// recorder is an interceptor outside the door: it sees what the door returns even if no
// client is left to see it.
func recorder(errs chan<- error) grpc.ServerOption {
	return grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		resp, err := handler(ctx, req)
		errs <- err
		return resp, err
	})
}

// deadline is the server's own: with the client's, it is open which side ends the request.
func deadline(d time.Duration) grpc.ServerOption {
	return grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
		ctx, cancel := context.WithTimeout(ctx, d)
		defer cancel()
		return handler(ctx, req)
	})
}

// silent never answers.
func silent(asked chan<- struct{}) driver.Driver {
	return faulty{memlock.New(), func(ctx context.Context, _ driver.Claim) (driver.Grant, error) {
		close(asked)
		<-ctx.Done()
		return driver.Grant{}, ctx.Err()
	}}
}

func TestDeadlineBeforeAnyAnswerIsDeadlineExceeded(t *testing.T) {
	t.Parallel()
	locks := newLocker(t, silent(make(chan struct{})))
	client := serve(t, &shop{}, append([]grpc.ServerOption{deadline(50 * time.Millisecond)},
		grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey))...)...)
	_, err := client.Refund(t.Context(), order())
	wantStatus(t, err, codes.DeadlineExceeded, "")
}

func TestCancelBeforeAnyAnswerIsCanceled(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{})
	locks := newLocker(t, silent(asked))
	errs := make(chan error, 1)
	client := serve(t, &shop{}, append([]grpc.ServerOption{recorder(errs)},
		grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey))...)...)
	ctx, cancel := context.WithCancel(t.Context())
	go func() { <-asked; cancel() }()
	_, err := client.Refund(ctx, order())
	wantStatus(t, err, codes.Canceled, "")
	err = <-errs
	wantStatus(t, err, codes.Canceled, "")
	if !errors.Is(err, core.ErrUnavailable) {
		t.Errorf("interceptors outside do not see core's error: %v", err)
	}
	if strings.Contains(err.Error(), "order:42") {
		t.Errorf("the error's text has core's: %v", err)
	}
}

func TestDeadlineWhileHeldIsHeld(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	hold(t, other, "order:42")
	client := serve(t, &shop{}, append([]grpc.ServerOption{deadline(300 * time.Millisecond)},
		grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey, core.WithWait(time.Minute)))...)...)
	_, err := client.Refund(t.Context(), order())
	wantStatus(t, err, codes.Aborted, grpcmw.ReasonHeld)
}

func TestWaitingRuleWaits(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	release := hold(t, other, "order:42")
	waited := make(chan struct{})
	locks2, err := locks.With(core.WithWait(0)) // a rule's own option wins over the door's and the Locker's
	if err != nil {
		t.Fatal(err)
	}
	client := serve(t, &shop{refund: ok}, grpcmw.ServerOptions(locks2, grpcmw.WithMethodFunc(refund,
		func(context.Context, *testpb.RefundRequest) (string, error) {
			close(waited)
			return "order:42", nil
		}, core.WithWait(time.Minute)))...)
	go func() { <-waited; release() }()
	if _, err := client.Refund(t.Context(), order()); err != nil {
		t.Error(err)
	}
}

func TestLossWhileTheHandlerRanIsAbortedAndItsReplyDropped(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]func(context.Context) (*testpb.Reply, error){
		"handler returned nil":         func(context.Context) (*testpb.Reply, error) { return &testpb.Reply{Text: "stale"}, nil },
		"handler returned ctx.Err":     func(ctx context.Context) (*testpb.Reply, error) { return nil, ctx.Err() },
		"handler returned the cause":   func(ctx context.Context) (*testpb.Reply, error) { return nil, context.Cause(ctx) },
		"handler returned its own":     func(context.Context) (*testpb.Reply, error) { return nil, status.Error(codes.DataLoss, "own") },
		"handler wrapped its own loss": func(ctx context.Context) (*testpb.Reply, error) { return nil, fmt.Errorf("x: %w", context.Cause(ctx)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := lockers(t)
			client := serve(t, &shop{refund: func(ctx context.Context, _ *testpb.RefundRequest) (*testpb.Reply, error) {
				<-ctx.Done()
				wantLostCause(t, ctx, "order:42")
				return outcome(ctx)
			}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey, shortLived()...))...)
			var trailer metadata.MD
			reply, err := client.Refund(t.Context(), order(), grpc.Trailer(&trailer))
			if reply.GetText() != "" {
				t.Errorf("the reply of lost work got out: %v", reply)
			}
			wantLost(t, err, trailer)
		})
	}
}

func wantLost(t *testing.T, err error, trailer metadata.MD) {
	t.Helper()
	wantStatus(t, err, codes.Aborted, grpcmw.ReasonLost)
	if retryInfo(err) != nil {
		t.Error("RetryInfo after a loss")
	}
	if got := trailer.Get("grpc-retry-pushback-ms"); len(got) != 1 || got[0] != "-1" {
		t.Errorf("pushback %q, want -1", got)
	}
}

func TestHoldBeyondMaxHoldIsALoss(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	client := serve(t, &shop{refund: func(ctx context.Context, _ *testpb.RefundRequest) (*testpb.Reply, error) {
		<-ctx.Done()
		return nil, ctx.Err()
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey, core.WithMaxHold(50*time.Millisecond)))...)
	var trailer metadata.MD
	_, err := client.Refund(t.Context(), order(), grpc.Trailer(&trailer))
	wantLost(t, err, trailer)
	comesFree(t, other, "order:42")
}
