package grpcmw

import (
	"context"
	"sync/atomic"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"

	"github.com/holdfast-go/holdfast/core"
)

// streamContext is the context of a stream from its beginning, so that one that was
// captured before the lock was held ends with the lock, and knows its lease, all the same.
type streamContext struct {
	context.Context // made by context.WithCancelCause, so that children attach to it directly
	cancel          context.CancelCauseFunc
	gate            gate

	entered atomic.Bool // the fields below are set, and not changed again
	lease   context.Context
	stop    func() bool
}

func newStreamContext(parent context.Context, s *stream) *streamContext {
	ctx, cancel := context.WithCancelCause(parent)
	return &streamContext{
		Context: ctx, cancel: cancel,
		gate: gate{grpc.ServerTransportStreamFromContext(parent), s},
	}
}

// enter makes c end with the lease. It keeps the lease's context, because asking for it
// takes a mutex that core may hold while it looks for a value.
func (c *streamContext) enter(x holding) {
	lease := x.Context()
	c.lease = lease
	c.stop = context.AfterFunc(lease, func() { c.cancel(context.Cause(lease)) })
	c.entered.Store(true)
}

// end ends c and keeps nothing registered.
func (c *streamContext) end() {
	c.cancel(nil)
	if c.entered.Load() {
		c.stop()
	}
}

// Value knows the lease once it is held. The context below comes first, so that package
// context finds what it keeps there; only the lease of somebody further out gives way.
func (c *streamContext) Value(key any) any {
	v := c.Context.Value(key)
	entered := c.entered.Load()
	switch v.(type) {
	case nil, *core.Lease:
		if entered {
			return c.lease.Value(key)
		}
	case grpc.ServerTransportStream:
		if !entered {
			return c.gate
		}
	}
	return v
}

// gate is the transport stream as grpc.SetHeader and grpc.SendHeader find it in a context:
// until the lock is held, it leads them to the stream.
type gate struct {
	grpc.ServerTransportStream
	stream *stream
}

func (g gate) SetHeader(md metadata.MD) error  { return g.stream.SetHeader(md) }
func (g gate) SendHeader(md metadata.MD) error { return g.stream.SendHeader(md) }
