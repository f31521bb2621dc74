package connectmw

import (
	"context"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
)

// incoming is a call's context with its header as package grpc has it, without the binary ones, which name no lock.
func incoming(ctx context.Context, header http.Header) context.Context {
	md := make(metadata.MD, len(header))
	for name, values := range header {
		if name = strings.ToLower(name); !strings.HasSuffix(name, "-bin") { // those it has decoded
			md[name] = values
		}
	}
	return metadata.NewIncomingContext(ctx, md)
}

// stream is a connection as package grpcmw needs it. The rest of a grpc.ServerStream nobody asks for: handlers get lockedConn.
type stream struct {
	grpc.ServerStream
	ctx  context.Context //nolint:containedctx // grpc.ServerStream has one
	conn connect.StreamingHandlerConn
}

func (s *stream) Context() context.Context { return s.ctx }
func (s *stream) RecvMsg(m any) error      { return s.conn.Receive(m) }
func (s *stream) SendMsg(m any) error      { return s.conn.Send(m) }
func (*stream) SetTrailer(metadata.MD)     {} // it stands in the answer, too

// lockedConn is a connection whose messages pass while the lock is held.
type lockedConn struct {
	connect.StreamingHandlerConn

	locked grpc.ServerStream
}

// Receive returns the answer to a loss once the lock is lost.
func (c *lockedConn) Receive(m any) error { return translate(c.locked.RecvMsg(m)) }

// Send sends nothing once the lock is lost.
func (c *lockedConn) Send(m any) error { return translate(c.locked.SendMsg(m)) }
