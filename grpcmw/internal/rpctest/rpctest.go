// Package rpctest is the table of cases that the interceptors have to pass, of gRPC and of Connect, each with a client of gRPC.
package rpctest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

// The methods that the table calls.
const (
	Refund = "/shop.v1.Orders/Refund"
	Watch  = "/shop.v1.Orders/Watch"
)

// Work is what a method does.
type Work func(ctx context.Context, req *testpb.RefundRequest) error

// Framework is a framework with its interceptors.
type Framework struct {
	// Mount serves Refund and Watch, which do the same.
	Mount func(t *testing.T, work Work, l *core.Locker, rules ...grpcmw.Option) testpb.OrdersClient
	// Status is an error by which a handler answers.
	Status func(code codes.Code, text string) error
}

// Test runs the table.
func Test(t *testing.T, f Framework) {
	t.Helper()
	for name, test := range map[string]func(*testing.T, Framework){
		"ARefusalIsAnsweredByTheTable": refusals, "WhatAHandlerReturns": returns, "DedupIsPerMethod": dedup, "SourcesNameTheLock": sources,
		"ABadValueIsInvalidArgumentAndNothingRuns": badValues, "AKeyFunctionThatRefuses": keyFunctions,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, f)
		})
	}
}

// OrderKey makes "order:42" of Order.
const OrderKey = "order:{order.id}"

// MustNotRun is the work of a method that is refused.
func MustNotRun(t *testing.T) Work {
	t.Helper()
	return func(context.Context, *testpb.RefundRequest) error {
		t.Error("the handler ran")
		return nil
	}
}

// Way is a unary call or a stream: whatever is promised of one is promised of the other.
type Way func(context.Context, testpb.OrdersClient, *testpb.RefundRequest) (trailer metadata.MD, err error)

// Ways are a unary call and a stream.
func Ways() map[string]Way {
	return map[string]Way{
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

// Locked are rules for both ways.
func Locked(key string, opts ...core.Option) []grpcmw.Option {
	return []grpcmw.Option{grpcmw.WithMethod(Refund, key, opts...), grpcmw.WithMethod(Watch, key, opts...)}
}

// Order is a request.
func Order() *testpb.RefundRequest {
	return &testpb.RefundRequest{Order: &testpb.Order{Id: 42}}
}

// detail is one of a status, nil if it has none.
func detail[T any](err error) *T {
	for _, d := range status.Convert(err).Details() {
		if d, ok := d.(*T); ok {
			return d
		}
	}
	return nil
}

// WantStatus checks code and reason, "" for no ErrorInfo.
func WantStatus(t testing.TB, err error, code codes.Code, reason string) {
	t.Helper()
	if got := status.Code(err); got != code {
		t.Errorf("code %s, want %s: %v", got, code, err)
	}
	if got := grpcmw.ReasonOf(err); got != reason || (detail[errdetails.ErrorInfo](err) != nil) != (reason != "") {
		t.Errorf("reason %q, want %q, or one that is empty", got, reason)
	}
}

// WantRefusal checks an answer to a request whose handler did not run.
func WantRefusal(t *testing.T, err error, trailer metadata.MD, code codes.Code, reason string) {
	t.Helper()
	WantStatus(t, err, code, reason)
	for _, secret := range []string{"order:42", "secret", locktest.Secret} {
		if text := fmt.Sprint(status.Convert(err).Proto(), trailer); strings.Contains(text, secret) {
			t.Errorf("%q reached the client: %s", secret, text)
		}
	}
	pushed := code == codes.Aborted
	info := detail[errdetails.RetryInfo](err)
	wait := info.GetRetryDelay().AsDuration()
	if again := pushed || code == codes.Unavailable; again != (info != nil) || again != (wait > 0) || wait > time.Second {
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

// WantBegun is an answer of ours to a request that has begun.
func WantBegun(t *testing.T, err error, trailer metadata.MD, code codes.Code, reason string) {
	t.Helper()
	WantStatus(t, err, code, reason)
	if text := fmt.Sprint(status.Convert(err).Proto(), trailer); strings.Contains(text, "secret") {
		t.Errorf("the client is told %s", text)
	}
	if detail[errdetails.RetryInfo](err) != nil {
		t.Error("it claims that no handler ran")
	}
	if p := trailer.Get("grpc-retry-pushback-ms"); len(p) != 1 || p[0] != "-1" {
		t.Errorf("pushback %q: a stock client may repeat what was begun", p)
	}
}
