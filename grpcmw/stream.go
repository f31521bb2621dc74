package grpcmw

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/adapter"
)

// errNoMessage is a request that names nothing.
var errNoMessage = adapter.Outcome{Reason: adapter.BadKey, Err: errors.New("the stream ended before its first message")}

// serve runs the handler of a stream under the lock. If a name needs the request, which is the one
// message of a server stream, it is received first, and handed on to the handler.
func (r *rule) serve(srv any, ss grpc.ServerStream, handler grpc.StreamHandler) (a *answer, own error) {
	var first proto.Message
	if r != nil && r.request != nil {
		first = r.request.New().Interface()
		if err := ss.RecvMsg(first); errors.Is(err, io.EOF) {
			return refusalOf(errNoMessage), nil
		} else if err != nil {
			return nil, err
		}
	}
	return r.run(ss.Context(), first, func(ctx context.Context) error {
		return handler(srv, &stream{ServerStream: ss, ctx: ctx, first: first})
	})
}

// stream is a stream under its lock.
type stream struct {
	grpc.ServerStream
	ctx   context.Context
	first proto.Message // nil once the handler has received it
}

// Context ends with the lock.
func (s *stream) Context() context.Context { return s.ctx }

// RecvMsg returns LOCK_LOST once the lock is lost.
func (s *stream) RecvMsg(m any) error {
	if err := s.standing(); err != nil {
		return err
	}
	if s.first != nil {
		return s.hand(m)
	}
	if err := s.ServerStream.RecvMsg(m); err != nil {
		return err
	}
	return s.standing() // the message may have taken longer than the lease
}

// hand copies the message that was received already.
func (s *stream) hand(m any) error {
	msg, ok := m.(proto.Message)
	if !ok || msg.ProtoReflect().Descriptor() != s.first.ProtoReflect().Descriptor() { // one of the same name may be another
		return &answer{status: status.New(codes.Internal, "RecvMsg: the message is not of the type that the method has")}
	}
	proto.Reset(msg)
	proto.Merge(msg, s.first)
	s.first = nil
	return nil
}

// SendMsg sends nothing once the lock is lost.
func (s *stream) SendMsg(m any) error {
	if err := s.standing(); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}

// SendHeader sends nothing once the lock is lost.
func (s *stream) SendHeader(md metadata.MD) error {
	if err := s.standing(); err != nil {
		return err
	}
	return s.ServerStream.SendHeader(md)
}

// standing returns the answer to a loss. The lease itself knows of it first: the timer that ends the
// context may be late. What the handler has given up itself is no loss.
func (s *stream) standing() error {
	if x, ok := core.FromContext(s.ctx); ok {
		if err := x.Err(); err != nil && !errors.Is(err, core.ErrReleased) {
			return answerTo(err)
		}
	}
	if l, ok := errors.AsType[*core.LostError](context.Cause(s.ctx)); ok { // of another one of several names
		return answerTo(l)
	}
	return nil
}
