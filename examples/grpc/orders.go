package main

import (
	"context"
	"errors"
	"io"

	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/examples/grpc/orderspb"
)

// orders is the service. Nothing in it speaks of locks.
type orders struct {
	orderspb.UnimplementedOrdersServer
}

const paidCents = 12000 // for every order

// Refund has a bug: it panics for no parts.
func (orders) Refund(_ context.Context, req *orderspb.RefundRequest) (*orderspb.RefundReply, error) {
	return &orderspb.RefundReply{CentsEach: paidCents / req.GetParts()}, nil
}

func (orders) Pack(ss grpc.BidiStreamingServer[orderspb.PackRequest, orderspb.PackReply]) error {
	for items := int64(1); ; items++ {
		_, err := ss.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		// ss.Context() ends with the lock: it is the one to do the work with.
		if err := ss.Send(&orderspb.PackReply{Items: items}); err != nil {
			return err
		}
	}
}
