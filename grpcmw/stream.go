package grpcmw

import (
	"context"
	"errors"
	"io"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
)

var errNoMessage = errors.New("the stream ended before its first message")

// stream is a server stream whose lock, once there is one, lets messages pass. As with
// every ServerStream, one goroutine may receive while another one sends.
type stream struct {
	grpc.ServerStream
	ctx   context.Context
	rule  *rule
	early *streamContext // ctx

	mu      sync.Mutex // protects the fields below
	lease   holding
	first   naming
	refusal error       // what the client gets, whatever the handler returns
	header  metadata.MD // held back until there is a lease
	over    bool        // the handler has returned
}

// newStream returns a stream that takes its lock with the first message, or before the handler runs if
// no name is made of a message.
func newStream(r *rule, ss grpc.ServerStream) *stream {
	s := &stream{ServerStream: ss, rule: r}
	s.early = newStreamContext(ss.Context(), s)
	s.ctx = s.early
	return s
}

// serve runs the handler and ends the lease that its messages took. Without recover, the
// stack of a panic stays whole.
//
// It says whether the error is the door's own answer, and not the handler's.
func (s *stream) serve(srv any, handler grpc.StreamHandler) (answered bool, err error) {
	if !s.rule.fromMessage {
		if err := s.admit(nil); err != nil {
			_, _ = s.end() // there is no lease
			return true, err
		}
	}
	returned := false
	defer func() {
		if returned {
			return
		}
		if x, _ := s.end(); x != nil {
			_ = x.Release(context.WithoutCancel(s.ctx)) // told to observer and log
		}
	}()
	err = handler(srv, s)
	returned = true
	return s.finish(err)
}

func (s *stream) finish(err error) (answered bool, _ error) {
	x, refusal := s.end()
	if refusal != nil && x != nil { // a later message's
		err = refusal
	}
	switch {
	case x == nil && refusal != nil:
		return true, refusal
	case x == nil:
		return false, err
	}
	if finished := x.Finish(s.ctx, err); finished != nil && wasLost(x) {
		return true, lost(finished)
	}
	return refusal != nil, err
}

// end ends the stream's context. From then on no lease is taken.
func (s *stream) end() (lease holding, refusal error) {
	s.mu.Lock()
	s.over = true
	lease, refusal = s.lease, s.refusal
	s.mu.Unlock()
	s.early.end()
	return lease, refusal
}

// Context replaces the context of the stream below.
func (s *stream) Context() context.Context { return s.ctx }

// RecvMsg takes the lock that the first message names. Once the lock is refused or lost,
// it returns that status.
func (s *stream) RecvMsg(m any) error {
	held, err := s.standing()
	if err != nil {
		return err
	}
	err = s.ServerStream.RecvMsg(m)
	switch {
	case held && err == nil:
		if _, err = s.standing(); err == nil { // the message may have taken longer than the lease
			err = s.compare(m)
		}
		return err
	case held:
		return err
	case errors.Is(err, io.EOF):
		return s.refuse(unnamed(s.rule.method, errNoMessage))
	case err != nil:
		return err
	default:
		return s.admit(m)
	}
}

// standing says whether the lock is held, and why it never will be again.
func (s *stream) standing() (held bool, err error) {
	s.mu.Lock()
	x, refusal := s.lease, s.refusal
	s.mu.Unlock()
	if x == nil || refusal != nil {
		return x != nil, refusal
	}
	if err := x.Err(); err != nil {
		return true, lost(err)
	}
	return true, nil
}

// admit takes the lock. The context of the stream below, which gRPC ends once the handler
// has returned, bounds it.
func (s *stream) admit(req any) error {
	ctx := s.ServerStream.Context()
	n, err := s.rule.name(ctx, req)
	if err != nil {
		return s.refuse(err)
	}
	x, err := s.rule.acquire(ctx, n)
	if err != nil {
		return s.refuse(s.rule.refused(ctx, err))
	}
	entered, err := s.enter(x, n)
	if !entered { // a goroutine that the handler has left behind
		_ = x.Release(context.WithoutCancel(ctx)) // told to observer and log
		return ended(context.Canceled)
	}
	return err
}

// enter opens the stream, unless its handler has returned.
func (s *stream) enter(x holding, n naming) (entered bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.over {
		return false, nil
	}
	err = s.ServerStream.SetHeader(s.header) // before anyone can send
	s.lease, s.first = x, n
	s.early.enter(x)
	return true, err
}

// compare refuses a message that names something else than the first one: the handler would work on
// it without its lock. A message without the values that make the name is let through, as a chunk of
// an upload is.
func (s *stream) compare(req any) error {
	if !s.rule.fromMessage {
		return nil
	}
	s.mu.Lock()
	first := s.first
	s.mu.Unlock()
	if err := s.rule.differs(s.ServerStream.Context(), req, first); err != nil {
		return s.refuse(s.rule.blame(s.ServerStream.Context(), strayed(err)))
	}
	return nil
}

func (s *stream) refuse(err error) error {
	s.mu.Lock()
	s.refusal = err
	s.mu.Unlock()
	s.early.cancel(err)
	return err
}

// SendMsg sends nothing before the lock is held, and nothing once it is lost.
func (s *stream) SendMsg(m any) error {
	if err := s.sendable("SendMsg"); err != nil {
		return err
	}
	return s.ServerStream.SendMsg(m)
}

// SendHeader sends nothing before the lock is held, and nothing once it is lost.
func (s *stream) SendHeader(md metadata.MD) error {
	if err := s.sendable("SendHeader"); err != nil {
		return err
	}
	return s.ServerStream.SendHeader(md)
}

func (s *stream) sendable(what string) error {
	held, err := s.standing()
	if !held && err == nil {
		return status.Error(codes.Internal, what+" before the first RecvMsg: nothing is sent before the lock is held")
	}
	return err
}

// SetHeader keeps the header until the lock is held: with one, a refusal's pushback would
// do nothing.
func (s *stream) SetHeader(md metadata.MD) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.lease == nil {
		s.header = metadata.Join(s.header, md)
		return nil
	}
	return s.ServerStream.SetHeader(md)
}
