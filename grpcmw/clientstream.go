package grpcmw

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"
)

// maxReplay is how much of what was sent is kept, in bytes, as in gRPC's own retries.
const maxReplay = 256 << 10

// StreamClientInterceptor is [UnaryClientInterceptor] for streams. It keeps what was sent, up to 256 KiB,
// until the server has answered with a message, and sends it again on a new stream. RecvMsg waits for
// that one. Beyond 256 KiB a refusal is returned as it is.
//
// As with gRPC's own retries, a message must not be changed after it was given to SendMsg.
func StreamClientInterceptor(opts ...ClientOption) grpc.StreamClientInterceptor {
	c := newCaller(opts)
	return func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, streamer grpc.Streamer, callOpts ...grpc.CallOption) (grpc.ClientStream, error) {
		ctx, err := c.fenced(ctx, method)
		if err != nil {
			return nil, err
		}
		s := &replayed{caller: c, ctx: ctx, method: method, began: time.Now(), open: func() (grpc.ClientStream, error) {
			return streamer(ctx, desc, cc, method, callOpts...)
		}}
		if s.now, err = s.open(); err != nil {
			return nil, err
		}
		return s, nil
	}
}

// replayed is a stream that may begin again until the server has answered.
type replayed struct {
	caller *caller
	ctx    context.Context
	method string
	began  time.Time
	open   func() (grpc.ClientStream, error)

	// sending is held by whoever sends: SendMsg, CloseSend, or the replay of what was sent before. Sending
	// can take as long as the server does not read, and it may wait for RecvMsg before it reads. So
	// RecvMsg never needs this mutex of a stream that lives. It is taken before mu.
	sending sync.Mutex

	mu     sync.Mutex // protects the fields below; held for moments only
	now    grpc.ClientStream
	sent   []any
	size   int
	closed bool // CloseSend was called
	final  bool // there is no other beginning
}

func (s *replayed) current() (now grpc.ClientStream, final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.now, s.final
}

// Context is that of the stream under way.
func (s *replayed) Context() context.Context {
	now, _ := s.current()
	return now.Context()
}

// Header is that of the stream under way.
func (s *replayed) Header() (metadata.MD, error) {
	now, _ := s.current()
	return now.Header()
}

// Trailer is that of the stream under way.
func (s *replayed) Trailer() metadata.MD {
	now, _ := s.current()
	return now.Trailer()
}

// SendMsg keeps m, as long as there may be another beginning. That the stream has ended is then told by
// RecvMsg, which may begin again.
func (s *replayed) SendMsg(m any) error {
	s.sending.Lock()
	defer s.sending.Unlock()
	now, final := s.keep(m)
	err := now.SendMsg(m)
	if errors.Is(err, io.EOF) && !final {
		return nil
	}
	return err
}

// keep returns the stream under way, and whether no other can follow it.
func (s *replayed) keep(m any) (now grpc.ClientStream, final bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.final {
		return s.now, true
	}
	size := maxReplay + 1 // of what cannot be measured
	if p, ok := m.(proto.Message); ok {
		size = proto.Size(p)
	}
	if s.size += size; s.size > maxReplay {
		s.final, s.sent = true, nil
	} else {
		s.sent = append(s.sent, m)
	}
	return s.now, s.final
}

// settle gives up other beginnings.
func (s *replayed) settle() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.final, s.sent = true, nil
}

// CloseSend says that nothing more is sent.
func (s *replayed) CloseSend() error {
	s.sending.Lock()
	defer s.sending.Unlock()
	s.mu.Lock()
	s.closed = true
	now := s.now
	s.mu.Unlock()
	return now.CloseSend()
}

// RecvMsg begins again if the server has refused the stream.
func (s *replayed) RecvMsg(m any) error {
	for {
		now, final := s.current()
		err := now.RecvMsg(m)
		if final {
			return err
		}
		if err == nil || !s.again(err) {
			s.settle()
			return err
		}
	}
}

// again begins again, after the stream under way was refused: so a SendMsg on it returns soon.
func (s *replayed) again(refusal error) bool {
	if _, final := s.current(); final || !s.caller.pause(s.ctx, s.method, refusal, s.began) {
		return false
	}
	s.sending.Lock()
	if _, final := s.current(); final { // something too large was sent meanwhile
		s.sending.Unlock()
		return false
	}
	next, err := s.open()
	if err != nil {
		s.sending.Unlock()
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now = next
	go s.replay(next, s.sent, s.closed) // it ends with the stream, if not before
	return true
}

// replay sends once more what was sent, while RecvMsg receives already. It ends the sending.
func (s *replayed) replay(next grpc.ClientStream, sent []any, closed bool) {
	defer s.sending.Unlock()
	for _, m := range sent {
		if next.SendMsg(m) != nil {
			return // RecvMsg tells why
		}
	}
	if closed {
		_ = next.CloseSend() // as above
	}
}
