package grpcmw_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

// way is a unary call or a stream: whatever is promised of one is promised of the other.
type way func(context.Context, testpb.OrdersClient, *testpb.RefundRequest) (trailer metadata.MD, err error)

func ways() map[string]way {
	return map[string]way{
		"unary": func(ctx context.Context, c testpb.OrdersClient, req *testpb.RefundRequest) (trailer metadata.MD, err error) {
			_, err = c.Refund(ctx, req, grpc.Trailer(&trailer))
			return trailer, err
		},
		"stream": func(ctx context.Context, c testpb.OrdersClient, req *testpb.RefundRequest) (metadata.MD, error) {
			ss, err := c.Watch(ctx, req)
			if err != nil {
				return nil, err
			}
			for err == nil {
				_, err = ss.Recv()
			}
			if errors.Is(err, io.EOF) {
				err = nil
			}
			return ss.Trailer(), err
		},
	}
}

// handled is a shop whose methods do the same.
func handled(work func(ctx context.Context, req *testpb.RefundRequest) error) *shop {
	return &shop{
		refund: func(ctx context.Context, req *testpb.RefundRequest) (*testpb.Reply, error) {
			return &testpb.Reply{Text: "reply"}, work(ctx, req)
		},
		quote: func(ctx context.Context, req *testpb.RefundRequest) (*testpb.Reply, error) {
			return &testpb.Reply{Text: "reply"}, work(ctx, req)
		},
		watch:     func(req *testpb.RefundRequest, ss watchServer) error { return work(ss.Context(), req) },
		negotiate: func(ss negotiateServer) error { return work(ss.Context(), nil) },
	}
}

func mustNotRun(t *testing.T) *shop {
	t.Helper()
	return handled(func(context.Context, *testpb.RefundRequest) error {
		t.Error("the handler ran")
		return nil
	})
}

// locked are rules for both ways.
func locked(key string, opts ...core.Option) []grpcmw.Option {
	return []grpcmw.Option{grpcmw.WithMethod(refund, key, opts...), grpcmw.WithMethod(watch, key, opts...)}
}

// What a client is told if no handler runs: the table of the package documentation.
func TestARefusalIsAnsweredByTheTable(t *testing.T) {
	t.Parallel()
	nothing := func(*testing.T, *core.Locker) {}
	dedup := []core.Option{core.WithDedup(time.Hour), core.WithDedupScope("scope")}
	silent := faulty{memlock.New(), func(ctx context.Context, _ driver.Claim) (driver.Grant, error) {
		<-ctx.Done()
		return driver.Grant{}, ctx.Err()
	}}
	unreachable := faulty{memlock.New(), func(context.Context, driver.Claim) (driver.Grant, error) {
		return driver.Grant{}, fmt.Errorf("dial redis-secret:6379: %w", driver.ErrNotSent)
	}}
	for name, row := range map[string]struct {
		driver  driver.Driver // nil for memory
		prepare func(*testing.T, *core.Locker)
		opts    []core.Option
		code    codes.Code
		reason  string
		text    string
	}{
		"held": {nil, func(t *testing.T, l *core.Locker) {
			t.Helper()
			hold(t, l, "order:42", core.WithLabel("host-secret"))
		}, nil, codes.Aborted, grpcmw.ReasonHeld, "another request holds"},
		"held, and the deadline passes": {nil, func(t *testing.T, l *core.Locker) {
			t.Helper()
			hold(t, l, "order:42", core.WithLabel("host-secret"))
		}, []core.Option{core.WithWait(time.Minute)}, codes.Aborted, grpcmw.ReasonHeld, "another request holds"},
		"unavailable": {unreachable, nothing, nil, codes.Unavailable, grpcmw.ReasonUnavailable, "did not answer"},
		"closed": {nil, func(t *testing.T, l *core.Locker) {
			t.Helper()
			if err := l.Close(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, nil, codes.Unavailable, grpcmw.ReasonUnavailable, "about to stop"},
		"draining": {nil, func(t *testing.T, l *core.Locker) {
			t.Helper()
			if err := l.Drain(t.Context()); err != nil {
				t.Fatal(err)
			}
		}, nil, codes.Unavailable, grpcmw.ReasonUnavailable, "about to stop"},
		"done": {nil, func(t *testing.T, l *core.Locker) {
			t.Helper()
			err := l.Do(t.Context(), "order:42", func(context.Context) error { return nil }, append(dedup, core.WithLabel("host-secret"))...)
			if err != nil {
				t.Fatal(err)
			}
		}, dedup, codes.AlreadyExists, grpcmw.ReasonDuplicate, "processed before"},
		"the deadline passes before any answer": {silent, nothing, nil, codes.DeadlineExceeded, "", "deadline"},
	} {
		for what, call := range ways() {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				d := row.driver
				if d == nil {
					d = memlock.New()
				}
				locks := newLocker(t, d)
				row.prepare(t, locks)
				within := 10 * time.Second
				if strings.Contains(name, "deadline") {
					within = 300 * time.Millisecond
				}
				client := serve(t, mustNotRun(t), append(deadline(within), grpcmw.ServerOptions(locks, locked(orderKey, row.opts...)...)...)...)
				trailer, err := call(t.Context(), client, order())
				wantRefusal(t, err, trailer, row.code, row.reason)
				if text := status.Convert(err).Message(); !strings.Contains(text, row.text) {
					t.Errorf("%q does not say %q", text, row.text)
				}
			})
		}
	}
}

// deadline is the server's own: with the client's, it is open which side ends the request.
func deadline(d time.Duration) []grpc.ServerOption {
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (any, error) {
			ctx, cancel := context.WithTimeout(ctx, d)
			defer cancel()
			return handler(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) error {
			ctx, cancel := context.WithTimeout(ss.Context(), d)
			defer cancel()
			return handler(srv, timed{ss, ctx})
		}),
	}
}

type timed struct {
	grpc.ServerStream
	ctx context.Context //nolint:containedctx // a stream has one
}

func (s timed) Context() context.Context { return s.ctx }

func wantRefusal(t *testing.T, err error, trailer metadata.MD, code codes.Code, reason string) {
	t.Helper()
	wantStatus(t, err, code, reason)
	for _, secret := range []string{"order:42", "secret", "6379"} {
		if text := fmt.Sprint(status.Convert(err).Proto(), trailer); strings.Contains(text, secret) {
			t.Errorf("%q reached the client: %s", secret, text)
		}
	}
	if method := errorInfo(err).GetMetadata()[grpcmw.MethodMetadata]; (method == "") != (reason == "") {
		t.Errorf("the refusal names the method %q", method)
	}
	pushed := code == codes.Aborted
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

// What is the program's fault, and not the request's, is Internal, and logged once.
func TestAFaultOfTheProgramIsInternalAndLoggedOnce(t *testing.T) {
	t.Parallel()
	inside := func(ctx context.Context, l *core.Locker, call func(context.Context) error) error {
		return l.Do(ctx, "order:42", call)
	}
	plain := func(ctx context.Context, _ *core.Locker, call func(context.Context) error) error { return call(ctx) }
	byFunc := grpcmw.WithMethodFunc(refund, func(context.Context, *testpb.RefundRequest) (string, error) { return "order:42", nil })
	for name, row := range map[string]struct {
		rule grpcmw.Option
		req  any
		run  func(context.Context, *core.Locker, func(context.Context) error) error
		says string
		code codes.Code
	}{
		"no request":             {grpcmw.WithMethod(refund, orderKey), nil, plain, "not of the type", codes.Internal},
		"bytes":                  {grpcmw.WithMethod(refund, orderKey), "raw", plain, "not of the type", codes.Internal},
		"another message":        {grpcmw.WithMethod(refund, orderKey), &testpb.Reply{}, plain, "not of the type", codes.Internal},
		"another, in a function": {byFunc, &testpb.Reply{}, plain, "not of the type", codes.Internal},
		"dedup of what the caller holds": {
			grpcmw.WithMethod(refund, orderKey, core.WithDedup(time.Hour)), order(), inside, "WithDedup", codes.Internal,
		},
		"a request's fault is not logged": {grpcmw.WithMethod(refund, orderKey), &testpb.RefundRequest{}, plain, "", codes.InvalidArgument},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var logged bytes.Buffer
			locks, _ := lockers(t)
			unary := grpcmw.UnaryServerInterceptor(locks, row.rule, grpcmw.WithLogger(slog.New(slog.NewTextHandler(&logged, nil))))
			for range 3 {
				err := row.run(t.Context(), locks, func(ctx context.Context) error {
					_, err := unary(ctx, row.req, &grpc.UnaryServerInfo{FullMethod: refund}, func(context.Context, any) (any, error) {
						t.Error("the handler ran")
						return nil, nil
					})
					return err
				})
				if status.Code(err) != row.code || row.says == "WithDedup" && !errors.Is(err, core.ErrInvalid) {
					t.Errorf("%v; interceptors outside want core's error", err)
				}
			}
			text := logged.String()
			if want := min(1, len(row.says)); strings.Count(text, "level=ERROR") != want || strings.Count(text, "\n") != want ||
				!strings.Contains(text, row.says) || want == 1 && !strings.Contains(text, "method="+refund) {
				t.Errorf("logged %q", text)
			}
		})
	}
}

// A handler's own answer is the client's, and no error of core tells of names and holders. With a lost lock, the loss is the answer.
func TestWhatAHandlerReturns(t *testing.T) {
	t.Parallel()
	failed := status.Error(codes.FailedPrecondition, "own")
	held := &core.HeldError{Name: "stock:secret", Label: "host-secret", RetryAfter: time.Second}
	lost := &core.LostError{Name: "stock:secret", Reason: core.ReasonExpired}
	for name, row := range map[string]struct {
		own    error
		code   codes.Code
		reason string
		core   bool // an error of core
	}{
		"nothing":        {nil, codes.OK, "", false},
		"status":         {failed, codes.FailedPrecondition, "", false},
		"wrapped status": {fmt.Errorf("own: %w", failed), codes.FailedPrecondition, "", false},
		"plain":          {errors.New("own"), codes.Unknown, "", false},
		"ctx error":      {context.DeadlineExceeded, codes.DeadlineExceeded, "", false},
		"held":           {held, codes.Aborted, grpcmw.ReasonHeld, true},
		"held, wrapped":  {fmt.Errorf("reserve: %w", held), codes.Aborted, grpcmw.ReasonHeld, true},
		"lost":           {lost, codes.Aborted, grpcmw.ReasonLost, true},
		"lost, status":   {errors.Join(failed, lost), codes.Aborted, grpcmw.ReasonLost, true},
		"duplicate":      {&core.DuplicateError{Name: "stock:secret", Label: "host-secret"}, codes.AlreadyExists, grpcmw.ReasonDuplicate, true},
		"invalid":        {fmt.Errorf("secret: %w", core.ErrInvalid), codes.InvalidArgument, grpcmw.ReasonKeyInvalid, true},
		"unavailable":    {fmt.Errorf("secret: %w", core.ErrUnavailable), codes.Unavailable, grpcmw.ReasonUnavailable, true},
		"closed":         {core.ErrClosed, codes.Unavailable, grpcmw.ReasonUnavailable, true},
		"draining":       {core.ErrDraining, codes.Unavailable, grpcmw.ReasonUnavailable, true},
		"released":       {core.ErrReleased, codes.Internal, "", true},
		"ended":          {errors.Join(context.DeadlineExceeded, fmt.Errorf("secret: %w", core.ErrUnavailable)), codes.DeadlineExceeded, "", true},
	} {
		if s := grpcmw.StatusFor(row.own); (s != nil) != row.core || row.core && s.Code() != row.code {
			t.Errorf("%s: StatusFor: %v", name, s)
		}
		for kind, rules := range map[string][]grpcmw.Option{"with a rule": locked(orderKey), "without a rule": nil, "lost lock": locked(orderKey, shortLived()...)} {
			for what, call := range ways() {
				t.Run(strings.Join([]string{name, kind, what}, ", "), func(t *testing.T) {
					t.Parallel()
					client := serve(t, handled(func(ctx context.Context, _ *testpb.RefundRequest) error {
						if kind == "lost lock" {
							<-ctx.Done()
							wantLostCause(t, ctx, "order:42")
						}
						return row.own
					}), grpcmw.ServerOptions(newLocker(t, memlock.New()), rules...)...)
					trailer, err := call(t.Context(), client, order())
					switch {
					case kind == "lost lock":
						wantBegun(t, err, trailer, codes.Aborted, grpcmw.ReasonLost)
					case row.core:
						wantBegun(t, err, trailer, row.code, row.reason)
					default:
						wantStatus(t, err, row.code, row.reason)
						if trailer.Get("grpc-retry-pushback-ms") != nil {
							t.Error("pushback on a handler's own answer")
						}
					}
				})
			}
		}
	}
}

// wantBegun is an answer of ours to a request that has begun.
func wantBegun(t *testing.T, err error, trailer metadata.MD, code codes.Code, reason string) {
	t.Helper()
	wantStatus(t, err, code, reason)
	if text := fmt.Sprint(status.Convert(err).Proto(), trailer); strings.Contains(text, "secret") {
		t.Errorf("the client is told %s", text)
	}
	if errorInfo(err).GetMetadata()[grpcmw.MethodMetadata] != "" || retryInfo(err) != nil {
		t.Error("it claims that no handler ran")
	}
	if p := trailer.Get("grpc-retry-pushback-ms"); len(p) != 1 || p[0] != "-1" {
		t.Errorf("pushback %q: a stock client may repeat what was begun", p)
	}
}

// The other server is another region's, a shard, or the next version of the service. Its refusal says
// of the same method that the handler did not run. Here it has run.
func TestAForwardedRefusalDoesNotNameTheMethodThatForwardsIt(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	hold(t, other, "order:42")
	next := serve(t, &shop{refund: ok}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(refund, orderKey))...)
	forward := func(ctx context.Context, req *testpb.RefundRequest) (*testpb.Reply, error) {
		return next.Refund(ctx, req)
	}
	for what, rule := range map[string]string{"with a rule": refund, "without a rule": quote} {
		opts := grpcmw.ServerOptions(newLocker(t, memlock.New()), grpcmw.WithMethod(rule, orderKey))
		_, err := serve(t, &shop{refund: forward}, opts...).Refund(t.Context(), order())
		if wantStatus(t, err, codes.Aborted, grpcmw.ReasonHeld); errorInfo(err).GetMetadata()[grpcmw.MethodMetadata] != "" {
			t.Errorf("%s: %v", what, errorInfo(err))
		}
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

func TestAHandlerRunsUnderTheLockOfItsRequest(t *testing.T) {
	t.Parallel()
	full := order()
	full.Note = "note"
	for name, row := range map[string]struct {
		own  func() error // of the handler
		code codes.Code
	}{
		"that returns": {func() error { return nil }, codes.OK},
		"that panics":  {func() error { panic("boom") }, codes.Internal},
	} {
		for what, call := range ways() {
			t.Run(name+", "+what, func(t *testing.T) {
				t.Parallel()
				locks, other := lockers(t)
				ran := make(chan context.Context, 1)
				client := serve(t, handled(func(ctx context.Context, req *testpb.RefundRequest) error {
					x, ok := core.FromContext(ctx)
					if !ok || x.Name() != "order:42" || !isHeld(t, other, "order:42") || !proto.Equal(req, full) {
						t.Errorf("lease %v, request %v", x, req)
					}
					if err := locks.Do(ctx, "order:42", func(context.Context) error { return nil }, core.WithWait(0)); err != nil {
						t.Errorf("it cannot enter its own lock again: %v", err)
					}
					ran <- ctx
					return row.own()
				}), append(recoverer(), grpcmw.ServerOptions(locks, locked(orderKey)...)...)...)
				_, err := call(t.Context(), client, full)
				wantStatus(t, err, row.code, "")
				<-(<-ran).Done()
				comesFree(t, other, "order:42")
			})
		}
	}
}

// recoverer turns the panic of a handler into a status, outside of the lock.
func recoverer() []grpc.ServerOption {
	recoverTo := func(err *error) {
		if v := recover(); v == "boom" {
			*err = status.Error(codes.Internal, "panic")
		}
	}
	return []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(func(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (_ any, err error) {
			defer recoverTo(&err)
			return handler(ctx, req)
		}),
		grpc.ChainStreamInterceptor(func(srv any, ss grpc.ServerStream, _ *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
			defer recoverTo(&err)
			return handler(srv, ss)
		}),
	}
}

func TestTheLockOutlivesACallerThatIsGone(t *testing.T) {
	t.Parallel()
	for what, call := range ways() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			locks, other := lockers(t)
			service, running, letGo := busy()
			client := serve(t, service, grpcmw.ServerOptions(locks, locked(orderKey)...)...)
			ctx, cancel := context.WithCancel(t.Context())
			done := make(chan error, 1)
			go func() { _, err := call(ctx, client, order()); done <- err }()
			work := <-running
			cancel()
			wantStatus(t, <-done, codes.Canceled, "")
			<-work.Done()
			if cause := context.Cause(work); !errors.Is(cause, context.Canceled) || errors.Is(cause, core.ErrLost) || !isHeld(t, other, "order:42") {
				t.Errorf("released under running work, cause %v", cause)
			}
			close(letGo)
			comesFree(t, other, "order:42")
		})
	}
}

func TestMethodsWithoutARulePassThroughAndDedupIsPerMethod(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	results := []error{status.Error(codes.Internal, "own"), nil, nil}
	client := serve(t, handled(func(ctx context.Context, _ *testpb.RefundRequest) error {
		if _, isLocked := core.FromContext(ctx); !isLocked {
			return nil
		}
		err := results[0]
		results = results[1:]
		return err
	}), grpcmw.ServerOptions(locks,
		grpcmw.WithMethod(refund, orderKey, core.WithDedup(time.Hour)), grpcmw.WithMethod(watch, orderKey, core.WithDedup(time.Hour)))...)
	unary, stream := ways()["unary"], ways()["stream"]
	for i, step := range []struct {
		call way
		code codes.Code
	}{
		{unary, codes.Internal}, {unary, codes.OK}, {unary, codes.AlreadyExists}, // a failure is not done
		{stream, codes.OK}, {stream, codes.AlreadyExists}, // it is another method's work
	} {
		if _, err := step.call(t.Context(), client, order()); status.Code(err) != step.code {
			t.Errorf("step %d: %v, want %s", i, err, step.code)
		}
	}
	hold(t, other, "order:42")
	if _, err := client.Quote(t.Context(), order()); err != nil {
		t.Error(err)
	}
}

func TestSeveralNamesAreHeldTogether(t *testing.T) {
	t.Parallel()
	for what, call := range ways() {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			store := memlock.New()
			locks, other := newLocker(t, store), newLocker(t, store)
			client := serve(t, handled(func(ctx context.Context, req *testpb.RefundRequest) error {
				for _, name := range []string{"order:42", "mail:a"} {
					if _, err := core.FenceFor(ctx, name); err != nil {
						t.Error(err)
					}
				}
				if req.GetNote() == "lose" {
					store.Lose("mail:a")
					<-ctx.Done()
				}
				return nil
			}), grpcmw.ServerOptions(locks, locked(both, core.WithTTL(300*time.Millisecond))...)...)
			if _, err := call(t.Context(), client, transfer(42, "a")); err != nil {
				t.Error(err)
			}
			lose := transfer(42, "a")
			lose.Note = "lose"
			trailer, err := call(t.Context(), client, lose)
			wantBegun(t, err, trailer, codes.Aborted, grpcmw.ReasonLost)
			hold(t, other, "mail:a")
			trailer, err = call(t.Context(), client, transfer(42, "a"))
			wantRefusal(t, err, trailer, codes.Aborted, grpcmw.ReasonHeld)
			comesFree(t, other, "order:42")
		})
	}
}

// both is a key of two names.
const both = "order:{order.id} mail:{email}"

func transfer(id int64, email string) *testpb.RefundRequest {
	return &testpb.RefundRequest{
		Order: &testpb.Order{Id: id}, Receiver: &testpb.RefundRequest_Email{Email: email},
	}
}
