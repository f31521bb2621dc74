package connectmw_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/connectmw"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

func TestAServerStreamHoldsTheLockOfItsRequest(t *testing.T) {
	t.Parallel()
	for protocol, opts := range protocols {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			locks, other := locktest.Two(t)
			h := connect.NewServerStreamHandler(watch, func(ctx context.Context, req *connect.Request[request], s *connect.ServerStream[reply]) error {
				if req.Msg.GetOrder().GetId() != 42 {
					t.Errorf("the handler got %v", req.Msg)
				}
				if locktest.IsFree(t, other, "order:42") {
					t.Error("free while the handler runs")
				}
				return s.Send(&reply{Text: name(ctx)})
			}, connectmw.WithLocks(locks, grpcmw.WithMethod(watch, "order:{order.id}")))
			s, err := client(serve(t, watch, h), watch, opts...).CallServerStream(t.Context(), order(42))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = s.Close() }()
			if !s.Receive() || s.Msg().GetText() != "order:42" || s.Receive() || s.Err() != nil {
				t.Errorf("%v, %v", s.Msg(), s.Err())
			}
		})
	}
}

func TestALostStreamEnds(t *testing.T) {
	t.Parallel()
	locks, _ := locktest.Two(t)
	h := connect.NewBidiStreamHandler(negotiate, func(ctx context.Context, s *connect.BidiStream[request, reply]) error {
		if _, err := s.Receive(); err != nil {
			return err
		}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), core.ErrLost) {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
		return s.Send(&reply{Text: "late"})
	}, connectmw.WithLocks(locks, grpcmw.WithMethod(negotiate, "nightly", core.WithMaxHold(10*time.Millisecond))))
	s := client(serve(t, negotiate, h), negotiate).CallBidiStream(t.Context())
	if err := s.Send(order(42).Msg); err != nil {
		t.Fatal(err)
	}
	_ = s.CloseRequest()
	_, err := s.Receive()
	if is, _ := reason(t, err); connect.CodeOf(err) != connect.CodeAborted || is != grpcmw.ReasonLost || errors.Is(err, io.EOF) {
		t.Errorf("%v (%s)", err, is)
	}
	_ = s.CloseResponse()
}
