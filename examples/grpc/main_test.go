package main

import (
	"bytes"
	"context"
	"strings"
	"testing"

	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/auth"
	"github.com/grpc-ecosystem/go-grpc-middleware/v2/interceptors/recovery"
	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/grpcmw"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func TestTheExampleShowsWhatItSays(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if code := run(t.Context(), &out, chain); code != 0 {
		t.Errorf("exit status %d", code)
	}
	rest := out.String()
	for _, line := range []string{
		"/orders.v1.Orders/Pack", "/orders.v1.Orders/Refund",
		"bob    Refund 42", "Aborted, LOCK_HELD, RetryInfo ", ", pushback ",
		"InvalidArgument, LOCK_KEY_INVALID", "Unauthenticated",
		"carol  Refund 42", "Aborted, LOCK_HELD", "alice  Pack 42, last item", "carol  again by itself", "OK",
		"Internal", "alice  Refund 42", "OK", "All as promised.",
	} {
		_, after, found := strings.Cut(rest, line)
		if !found {
			t.Fatalf("%q is not shown, or not in its place:\n%s", line, out.String())
		}
		rest = after
	}
	if lines := strings.Count(out.String(), "\n"); lines > 40 {
		t.Errorf("%d lines are too many to read", lines)
	}
}

func TestTheExampleFailsWhereSomethingIsNotSo(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		chain func(*grpcmw.Interceptors) []grpc.ServerOption
		says  string
	}{
		"no lock": {func(*grpcmw.Interceptors) []grpc.ServerOption { return parts(nil, true) }, "bob    Refund 42: OK, want Aborted"},
		"the lock is first": {func(d *grpcmw.Interceptors) []grpc.ServerOption {
			return append(d.ServerOptions(), parts(nil, true)...)
		}, "want Unauthenticated"},
		"nobody has to say a name": {func(d *grpcmw.Interceptors) []grpc.ServerOption { return parts(d, false) }, "want Unauthenticated"},
		"no selector":              {func(d *grpcmw.Interceptors) []grpc.ServerOption { return parts(d, true) }, "Health/Check"},
		"unary calls are not locked": {func(d *grpcmw.Interceptors) []grpc.ServerOption {
			return append(parts(nil, true), grpc.ChainStreamInterceptor(d.Stream()))
		}, "bob    Refund 42: OK, want Aborted"},
		"streams are not locked": {func(d *grpcmw.Interceptors) []grpc.ServerOption {
			return append(parts(nil, true), grpc.ChainUnaryInterceptor(d.Unary()))
		}, "want Aborted"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out bytes.Buffer
			if code := run(t.Context(), &out, row.chain); code != 1 {
				t.Errorf("exit status %d", code)
			}
			_, failed, _ := strings.Cut(out.String(), "FAILED: ")
			if !strings.Contains(failed, row.says) || strings.Contains(out.String(), "All as promised") {
				t.Errorf("it does not say %q:\n%s", row.says, out.String())
			}
		})
	}
}

// parts are interceptors with something missing.
func parts(locking *grpcmw.Interceptors, authenticates bool) []grpc.ServerOption {
	recovers := recovery.WithRecoveryHandler(func(any) error { return status.Error(codes.Internal, "panic") })
	opts := []grpc.ServerOption{
		grpc.ChainUnaryInterceptor(recovery.UnaryServerInterceptor(recovers)),
		grpc.ChainStreamInterceptor(recovery.StreamServerInterceptor(recovers)),
	}
	if authenticates {
		opts = append(opts, grpc.ChainUnaryInterceptor(auth.UnaryServerInterceptor(authenticate)),
			grpc.ChainStreamInterceptor(auth.StreamServerInterceptor(authenticate)))
	}
	if locking != nil {
		opts = append(opts, locking.ServerOptions()...)
	}
	return opts
}

func TestAnInterruptedExampleFails(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out bytes.Buffer
	if code := run(ctx, &out, chain); code != 1 || !strings.Contains(out.String(), "FAILED") {
		t.Errorf("exit status %d:\n%s", code, out.String())
	}
}
