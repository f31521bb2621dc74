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

func TestALostStreamEnds(t *testing.T) {
	t.Parallel()
	locks, _ := locktest.Two(t)
	h := connect.NewBidiStreamHandler(negotiate, func(ctx context.Context, s *connect.BidiStream[request, reply]) error {
		if _, err := s.Receive(); err != nil {
			return err
		}
		if name(ctx) != "nightly" {
			t.Error("no lock in the stream's context")
			return nil
		}
		<-ctx.Done()
		if !errors.Is(context.Cause(ctx), core.ErrLost) {
			t.Errorf("ended by %v", context.Cause(ctx))
		}
		return s.Send(&reply{Value: "late"})
	}, connectmw.WithLocks(locks, grpcmw.WithMethod(negotiate, "nightly", core.WithMaxHold(10*time.Millisecond))))
	s := client(serve(t, negotiate, h), negotiate).CallBidiStream(t.Context())
	locktest.OK(t, s.Send(order(42).Msg))
	_ = s.CloseRequest()
	_, err := s.Receive()
	if is, _ := reason(t, err); connect.CodeOf(err) != connect.CodeAborted || is != grpcmw.ReasonLost || errors.Is(err, io.EOF) {
		t.Errorf("%v (%s)", err, is)
	}
	_ = s.CloseResponse()
}
