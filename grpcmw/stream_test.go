package grpcmw_test

import (
	"context"
	"errors"
	"io"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/rpctest"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
	"github.com/holdfast-go/holdfast/internal/locktest"
)

type negotiateClient = grpc.BidiStreamingClient[testpb.RefundRequest, testpb.Reply]

// open starts a Negotiate stream that ends with the test.
func open(t *testing.T, client testpb.OrdersClient) negotiateClient {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	t.Cleanup(cancel)
	ss, err := client.Negotiate(ctx)
	locktest.OK(t, err)
	return ss
}

func send(t *testing.T, ss negotiateClient, req *testpb.RefundRequest) {
	t.Helper()
	locktest.OK(t, ss.Send(req))
}

func TestKeyWithoutRequestFieldLocksBeforeTheHandler(t *testing.T) {
	t.Parallel()
	client := serve(t, &shop{negotiate: func(ss negotiateServer) error {
		if name := locktest.NameOf(ss.Context()); name != "tenant:acme" {
			t.Error(name)
		}
		return errors.Join(ss.SendHeader(metadata.Pairs("x", "y")), ss.Send(&testpb.Reply{})) // without any message
	}}, grpcmw.ServerOptions(locktest.Memory(t), grpcmw.WithMethod(negotiate, "tenant:{metadata:x-tenant|text}"))...)
	for tenant, want := range map[string]codes.Code{"acme": codes.OK, "": codes.InvalidArgument} {
		ss, err := client.Negotiate(metadata.AppendToOutgoingContext(t.Context(), "x-tenant", tenant))
		locktest.OK(t, err)
		_, err = ss.Recv()
		if header, _ := ss.Header(); status.Code(err) != want || (header.Get("x") != nil) != (want == codes.OK) {
			t.Errorf("%q: %v, header %v", tenant, err, header)
		}
	}
}

func TestNothingPassesAStreamThatHasLostItsLock(t *testing.T) {
	t.Parallel()
	store, lostIt := memlock.New(), make(chan struct{})
	client := serve(t, &shop{negotiate: func(ss negotiateServer) error {
		if _, err := ss.Recv(); err != nil {
			return err
		}
		received := make(chan error, 1)
		go func() { // waits for the client when the lock is lost
			_, err := ss.Recv()
			received <- err
		}()
		store.Lose("a:" + negotiate) // one of its locks
		<-ss.Context().Done()
		close(lostIt)
		rpctest.WantStatus(t, ss.Send(&testpb.Reply{Value: "stale"}), codes.Aborted, grpcmw.ReasonLost)
		rpctest.WantStatus(t, ss.SendHeader(metadata.Pairs("stale", "1")), codes.Aborted, grpcmw.ReasonLost)
		rpctest.WantStatus(t, <-received, codes.Aborted, grpcmw.ReasonLost)
		_, err := ss.Recv()
		rpctest.WantStatus(t, err, codes.Aborted, grpcmw.ReasonLost)
		return nil
	}}, grpcmw.ServerOptions(locktest.Locker(t, store),
		grpcmw.WithMethod(negotiate, "a:{grpc:method} b:{grpc:method}", core.WithTTL(300*time.Millisecond)))...)
	ss := open(t, client)
	send(t, ss, rpctest.Order())
	<-lostIt
	send(t, ss, rpctest.Order())
	reply, err := ss.Recv()
	if reply != nil {
		t.Errorf("sent after the loss: %v", reply)
	}
	rpctest.WantBegun(t, err, ss.Trailer(), codes.Aborted, grpcmw.ReasonLost)
}

// Whoever gives the lock up, or hands it off to a task, knows of it.
func TestAStreamGoesOnWithoutTheLockThatItsHandlerHasGivenUp(t *testing.T) {
	t.Parallel()
	locks, other := locktest.Two(t)
	client := serve(t, &shop{negotiate: func(ss negotiateServer) error {
		x, _ := core.FromContext(ss.Context())
		if err := x.Release(ss.Context()); err != nil || !locktest.IsFree(t, other, "nightly") {
			t.Errorf("not released: %v", err)
		}
		if _, err := ss.Recv(); err != nil {
			return err
		}
		return ss.Send(&testpb.Reply{Value: "accepted"})
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(negotiate, "nightly"))...)
	ss := open(t, client)
	send(t, ss, rpctest.Order())
	if reply, err := ss.Recv(); err != nil || reply.GetValue() != "accepted" {
		t.Errorf("%v, %v", reply, err)
	}
	if _, err := ss.Recv(); !errors.Is(err, io.EOF) {
		t.Errorf("ended with %v", err)
	}
}

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

func TestAStreamWithoutAMessageDoesNotRun(t *testing.T) {
	t.Parallel()
	middleware := grpcmw.StreamServerInterceptor(locktest.Memory(t), grpcmw.WithMethod(watch, rpctest.OrderKey))
	for below, want := range map[error]error{
		io.EOF: status.Error(codes.InvalidArgument, ""), // as Connect has it; grpc answers by itself
		status.Error(codes.Canceled, "the client has left"): status.Error(codes.Canceled, ""),
	} {
		err := middleware(nil, &serverStream{ctx: t.Context(), err: below}, &grpc.StreamServerInfo{FullMethod: watch}, func(any, grpc.ServerStream) error {
			t.Error("the handler ran")
			return nil
		})
		if status.Code(err) != status.Code(want) {
			t.Errorf("%v: %v", below, err)
		}
	}
}

// A server with a codec of its own may receive into anything.
func TestTheMessageIsHandedToItsOwnTypeOnly(t *testing.T) {
	t.Parallel()
	linked := (&testpb.RefundRequest{}).ProtoReflect().Descriptor()
	file, err := protodesc.NewFile(protodesc.ToFileDescriptorProto(linked.ParentFile()), protoregistry.GlobalFiles)
	locktest.OK(t, err)
	loaded := dynamicpb.NewMessage(file.Messages().ByName(linked.Name())) // the same schema, loaded at run time
	middleware := grpcmw.StreamServerInterceptor(locktest.Memory(t), grpcmw.WithMethod(watch, rpctest.OrderKey))
	below := &serverStream{ctx: t.Context()}
	err = middleware(nil, below, &grpc.StreamServerInfo{FullMethod: watch}, func(_ any, ss grpc.ServerStream) error {
		for _, m := range []any{new(string), &testpb.Reply{}, loaded} {
			rpctest.WantStatus(t, ss.RecvMsg(m), codes.Internal, "")
		}
		req := &testpb.RefundRequest{Note: "of an earlier one"}
		if err := ss.RecvMsg(req); err != nil || req.GetOrder().GetId() != 42 || req.GetNote() != "" {
			t.Errorf("%v, %v", req, err)
		}
		if err := ss.RecvMsg(req); err != nil || below.received != 2 { // it is handed on once
			t.Errorf("%d messages received, %v", below.received, err)
		}
		below.err = io.EOF
		if err := ss.RecvMsg(req); !errors.Is(err, io.EOF) {
			t.Errorf("at the end: %v", err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}
