package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

// The tests here call an interceptor without a server around it.

// serverStream is a stream without a transport that receives one request.
type serverStream struct {
	grpc.ServerStream
	ctx      context.Context
	err      error // of RecvMsg
	received int
}

func (s *serverStream) Context() context.Context    { return s.ctx }
func (s *serverStream) SetTrailer(metadata.MD)      {}
func (s *serverStream) SetHeader(metadata.MD) error { return nil }
func (s *serverStream) SendMsg(any) error           { return nil }
func (s *serverStream) RecvMsg(m any) error {
	m.(*testpb.RefundRequest).Order = &testpb.Order{Id: 42}
	s.received++
	return s.err
}

func TestStreamsContextEndsWithItsHandler(t *testing.T) {
	t.Parallel()
	door := grpcmw.StreamServerInterceptor(newLocker(t, memlock.New()), grpcmw.WithMethod(watch, orderKey))
	contexts := make(chan context.Context, 1)
	err := door(nil, &serverStream{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: watch}, func(_ any, ss grpc.ServerStream) error {
		contexts <- ss.Context()
		return nil
	})
	ctx := <-contexts
	if err != nil || ctx.Err() == nil || !errors.Is(context.Cause(ctx), context.Canceled) {
		t.Errorf("%v, then the context's cause is %v", err, context.Cause(ctx))
	}
}

func TestAStreamWithoutAMessageHasNoKey(t *testing.T) {
	t.Parallel()
	door := grpcmw.StreamServerInterceptor(newLocker(t, memlock.New()), grpcmw.WithMethod(watch, orderKey))
	ss := &serverStream{ctx: t.Context(), err: io.EOF} // as Connect has it; grpc answers by itself
	err := door(nil, ss, &grpc.StreamServerInfo{FullMethod: watch}, func(any, grpc.ServerStream) error {
		t.Error("the handler ran")
		return nil
	})
	wantStatus(t, err, codes.InvalidArgument, grpcmw.ReasonKeyInvalid)
}

// A server with a codec of its own may receive into anything.
func TestTheMessageIsHandedToItsOwnTypeOnly(t *testing.T) {
	t.Parallel()
	door := grpcmw.StreamServerInterceptor(newLocker(t, memlock.New()), grpcmw.WithMethod(watch, orderKey))
	below := &serverStream{ctx: t.Context()}
	err := door(nil, below, &grpc.StreamServerInfo{FullMethod: watch}, func(_ any, ss grpc.ServerStream) error {
		for _, m := range []any{new(string), &testpb.Reply{}} {
			wantStatus(t, ss.RecvMsg(m), codes.Internal, "")
		}
		req := &testpb.RefundRequest{Note: "of an earlier one"}
		if err := ss.RecvMsg(req); err != nil || req.GetOrder().GetId() != 42 || req.GetNote() != "" {
			t.Errorf("%v, %v", req, err)
		}
		if err := ss.RecvMsg(req); err != nil || below.received != 2 { // it is handed on once
			t.Errorf("%d messages received, %v", below.received, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestHeldIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks, other := lockers(t)
		hold(t, other, "order:42")
		door, err := grpcmw.New(locks, grpcmw.WithMethod(refund, orderKey), grpcmw.WithMethod(watch, orderKey))
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		_, err = door.Unary()(t.Context(), order(), &grpc.UnaryServerInfo{FullMethod: refund}, nil)
		wantStatus(t, err, codes.Aborted, grpcmw.ReasonHeld)
		err = door.Stream()(nil, &serverStream{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: watch}, func(_ any, ss grpc.ServerStream) error {
			return ss.RecvMsg(&testpb.RefundRequest{})
		})
		wantStatus(t, err, codes.Aborted, grpcmw.ReasonHeld)
		if waited := time.Since(began); waited > 0 {
			t.Errorf("waited %s", waited)
		}
	})
}

func TestStreamsLeaseIsTheInnermost(t *testing.T) {
	t.Parallel()
	locks, _ := lockers(t)
	door := grpcmw.StreamServerInterceptor(locks, grpcmw.WithMethod(watch, orderKey))
	err := locks.Do(t.Context(), "outer", func(ctx context.Context) error {
		return door(nil, &serverStream{ctx: ctx}, &grpc.StreamServerInfo{FullMethod: watch}, func(_ any, ss grpc.ServerStream) error {
			if x, _ := core.FromContext(ss.Context()); x == nil || x.Name() != "order:42" {
				t.Errorf("lease %v", x)
			}
			return nil
		})
	})
	if err != nil {
		t.Error(err)
	}
}

func TestStreamHasNoMaxHoldUnlessItsRuleSaysSo(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		key  string
		opts []core.Option
		lost bool
	}{
		"locked by its message":     {orderKey, nil, false},
		"locked by its method":      {"{grpc:method}", nil, false},
		"locked by its message, 1h": {orderKey, []core.Option{core.WithMaxHold(time.Hour)}, true},
		"locked by its method, 1h":  {"{grpc:method}", []core.Option{core.WithMaxHold(time.Hour)}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				door := grpcmw.StreamServerInterceptor(newLocker(t, memlock.New()), grpcmw.WithMethod(watch, row.key, row.opts...))
				err := door(nil, &serverStream{ctx: t.Context()}, &grpc.StreamServerInfo{FullMethod: watch}, func(_ any, ss grpc.ServerStream) error {
					if err := ss.RecvMsg(&testpb.RefundRequest{}); err != nil {
						return err
					}
					time.Sleep(2 * time.Hour)
					return ss.Context().Err()
				})
				if row.lost {
					wantStatus(t, err, codes.Aborted, grpcmw.ReasonLost)
				} else if err != nil {
					t.Error(err)
				}
			})
		})
	}
}
