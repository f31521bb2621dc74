package grpcmw_test

import (
	"context"
	"io"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"google.golang.org/genproto/googleapis/rpc/errdetails"

	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

// deaf is a stream whose server reads no more before it has sent all: as with flow control on both sides.
type deaf struct {
	grpc.ClientStream
	ctx     context.Context
	refusal error
	sending chan struct{} // a SendMsg has begun
	read    chan struct{} // closed when the client has received both messages
	got     int
}

func newDeaf(ctx context.Context, refusal error) *deaf {
	return &deaf{ctx: ctx, refusal: refusal, sending: make(chan struct{}, 10), read: make(chan struct{})}
}

func (d *deaf) Context() context.Context     { return d.ctx }
func (d *deaf) Header() (metadata.MD, error) { return nil, nil }
func (d *deaf) Trailer() metadata.MD         { return nil }
func (d *deaf) CloseSend() error             { return nil }

func (d *deaf) SendMsg(any) error {
	d.sending <- struct{}{}
	if d.refusal != nil {
		return io.EOF
	}
	select {
	case <-d.read:
		return nil
	case <-d.ctx.Done():
		return d.ctx.Err()
	}
}

func (d *deaf) RecvMsg(any) error {
	switch d.got++; {
	case d.refusal != nil:
		return d.refusal
	case d.got == 2:
		close(d.read)
	case d.got > 2:
		return io.EOF
	}
	return nil
}

// opened returns a stream with our interceptor, above those that are given, in their order.
func opened(t *testing.T, streams ...*deaf) grpc.ClientStream {
	t.Helper()
	next := 0
	ss, err := grpcmw.StreamClientInterceptor()(t.Context(), &grpc.StreamDesc{}, nil, negotiate,
		func(context.Context, *grpc.StreamDesc, *grpc.ClientConn, string, ...grpc.CallOption) (grpc.ClientStream, error) {
			next++
			return streams[next-1], nil
		})
	if err != nil {
		t.Fatal(err)
	}
	return ss
}

func receive(t *testing.T, ss grpc.ClientStream, n int) {
	t.Helper()
	for range n {
		if err := ss.RecvMsg(&testpb.Reply{}); err != nil {
			t.Error(err)
		}
	}
}

// A server may send before it reads on. So a SendMsg that waits for the server must not keep RecvMsg waiting.
func TestReceivingDoesNotWaitForSending(t *testing.T) {
	t.Parallel()
	below := newDeaf(t.Context(), nil)
	ss := opened(t, below)
	sent := make(chan error, 1)
	go func() { sent <- ss.SendMsg(order()) }()
	<-below.sending
	receive(t, ss, 2)
	if err := <-sent; err != nil {
		t.Error(err)
	}
}

func TestReceivingDoesNotWaitForTheReplay(t *testing.T) {
	t.Parallel()
	s, err := status.New(codes.Aborted, "held").WithDetails(
		&errdetails.ErrorInfo{Reason: grpcmw.ReasonHeld, Domain: grpcmw.Domain, Metadata: map[string]string{grpcmw.MethodMetadata: negotiate}},
		&errdetails.RetryInfo{RetryDelay: durationpb.New(1)})
	if err != nil {
		t.Fatal(err)
	}
	first, second := newDeaf(t.Context(), s.Err()), newDeaf(t.Context(), nil)
	ss := opened(t, first, second)
	for range 2 {
		if err := ss.SendMsg(order()); err != nil { // the refusal is told by RecvMsg
			t.Fatal(err)
		}
	}
	receive(t, ss, 2)
	if err := ss.SendMsg(order()); err != nil {
		t.Error(err)
	}
	if n := len(second.sending); n != 3 {
		t.Errorf("%d messages on the second stream, want 3", n)
	}
}
