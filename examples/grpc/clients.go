package main

import (
	"context"
	"strconv"
	"strings"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/examples/grpc/orderspb"
)

// retryPolicy is all that a client needs to get through contention. Its own pauses would be
// 50 and 100 ms here; what the server asks for, in grpc-retry-pushback-ms, goes before them.
const retryPolicy = `{"methodConfig": [{
	"name": [{"service": "orders.v1.Orders"}],
	"retryPolicy": {
		"maxAttempts": 5, "initialBackoff": "0.05s", "maxBackoff": "1s", "backoffMultiplier": 2,
		"retryableStatusCodes": ["ABORTED"]
	}
}]}`

func dial(addr string, opts ...grpc.DialOption) (*grpc.ClientConn, error) {
	return grpc.NewClient(addr, append(opts, grpc.WithTransportCredentials(insecure.NewCredentials()))...)
}

// as is a context for calls by a user.
func as(ctx context.Context, user string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "bearer "+user)
}

func refund(ctx context.Context, c orderspb.OrdersClient, id, parts int64, opts ...grpc.CallOption) error {
	_, err := c.Refund(ctx, &orderspb.RefundRequest{OrderId: id, Parts: parts}, opts...)
	return err
}

// packing is a Pack stream that has its lock.
type packing grpc.BidiStreamingClient[orderspb.PackRequest, orderspb.PackReply]

// pack opens a stream, sends the first item and waits for the answer. The trailer comes with a
// refusal.
func pack(ctx context.Context, c orderspb.OrdersClient, id int64) (packing, metadata.MD, error) {
	ss, err := c.Pack(metadata.AppendToOutgoingContext(ctx, "x-order", strconv.FormatInt(id, 10)))
	if err != nil {
		return nil, nil, err
	}
	_ = ss.Send(&orderspb.PackRequest{Item: "book"}) // Recv knows why it could not
	if _, err := ss.Recv(); err != nil {
		return nil, ss.Trailer(), err
	}
	return ss, nil, nil
}

// describe is what a client can learn from an answer.
func describe(err error, trailer metadata.MD) string {
	s := status.Convert(err)
	text := []string{s.Code().String()}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			text = append(text, d.GetReason())
		case *errdetails.RetryInfo:
			text = append(text, "RetryInfo "+seconds(d.GetRetryDelay().AsDuration()))
		}
	}
	for _, ms := range trailer.Get("grpc-retry-pushback-ms") {
		text = append(text, "pushback "+ms+" ms")
	}
	return strings.Join(text, ", ")
}

// attempts sees each attempt of a client's calls, those too that the retry policy hides.
type attempts chan *stats.End

func (a attempts) HandleRPC(_ context.Context, s stats.RPCStats) {
	if end, ok := s.(*stats.End); ok {
		a <- end
	}
}

func (attempts) TagRPC(ctx context.Context, _ *stats.RPCTagInfo) context.Context   { return ctx }
func (attempts) TagConn(ctx context.Context, _ *stats.ConnTagInfo) context.Context { return ctx }
func (attempts) HandleConn(context.Context, stats.ConnStats)                       {}
