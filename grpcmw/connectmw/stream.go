package connectmw

import (
	"context"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// transport is a call as package grpc's functions find it in a context.
type transport struct {
	procedure string
	header    func(metadata.MD) error // nil for unary calls, whose handlers have a response for that
	trailer   metadata.MD
}

func (t *transport) context(ctx context.Context, header http.Header) context.Context {
	md := make(metadata.MD, len(header))
	for name, values := range header {
		name = strings.ToLower(name)
		for _, v := range values {
			if strings.HasSuffix(name, "-bin") { // as grpc has it
				raw, err := connect.DecodeBinaryHeader(v)
				if err != nil {
					continue
				}
				v = string(raw)
			}
			md[name] = append(md[name], v)
		}
	}
	return grpc.NewContextWithServerTransportStream(metadata.NewIncomingContext(ctx, md), t)
}

func (t *transport) Method() string { return t.procedure }

func (t *transport) SetHeader(md metadata.MD) error {
	if t.header == nil {
		return nil
	}
	return t.header(md)
}

func (t *transport) SendHeader(md metadata.MD) error { return t.SetHeader(md) }

func (t *transport) SetTrailer(md metadata.MD) error {
	t.trailer = metadata.Join(t.trailer, md)
	return nil
}

// stream is a connection as a stream of package grpc.
type stream struct {
	transport *transport
	ctx       context.Context //nolint:containedctx // grpc.ServerStream has one
	conn      connect.StreamingHandlerConn
}

func (s *stream) Context() context.Context { return s.ctx }
func (s *stream) RecvMsg(m any) error      { return s.conn.Receive(m) }
func (s *stream) SendMsg(m any) error      { return s.conn.Send(m) }

func (s *stream) SetHeader(md metadata.MD) error {
	for name, values := range md {
		for _, v := range values {
			s.conn.ResponseHeader().Add(name, v)
		}
	}
	return nil
}

func (s *stream) SendHeader(md metadata.MD) error {
	_ = s.SetHeader(md)
	return s.conn.Send(nil) // sends the header alone
}

func (s *stream) SetTrailer(md metadata.MD) { _ = s.transport.SetTrailer(md) }

// lockedConn is a connection whose messages pass while the lock is held.
type lockedConn struct {
	connect.StreamingHandlerConn

	locked grpc.ServerStream
}

// Receive returns the answer to a loss once the lock is lost.
func (c *lockedConn) Receive(m any) error { return translate(c.locked.RecvMsg(m), nil) }

// Send sends nothing once the lock is lost.
func (c *lockedConn) Send(m any) error { return translate(c.locked.SendMsg(m), nil) }
