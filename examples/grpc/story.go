package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
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

// tell returns what was not as promised.
func tell(ctx context.Context, out io.Writer, address string, locked []string) error {
	plain, patient, hangUp, err := dial(address)
	if err != nil {
		return err
	}
	defer hangUp()
	orders, stock := orderspb.NewOrdersClient(plain), orderspb.NewOrdersClient(patient)
	var wrong []error
	act := func(title string) { _, _ = fmt.Fprintf(out, "\n%s\n", title) }
	expect := func(want codes.Code, what string, got error) {
		_, _ = fmt.Fprintf(out, "   %-36s %s\n", what, describe(got))
		if status.Code(got) != want {
			wrong = append(wrong, fmt.Errorf("%s: %s, want %s", what, describe(got), want))
		}
	}

	act("Locked are " + strings.Join(locked, ", "))

	act("Alice packs order 42: a bidi stream, locked by its metadata")
	parcel, err := pack(as(ctx, "alice"), orders)
	expect(codes.OK, "alice  Pack 42, first item", err)
	if err != nil {
		return errors.Join(wrong...)
	}

	act("Bob is answered at once")
	expect(codes.Aborted, "bob    Refund 42", refund(as(ctx, "bob"), orders, 42, 2))
	_, err = pack(as(ctx, "bob"), orders)
	expect(codes.Aborted, "bob    Pack 42", err)
	expect(codes.OK, "bob    Refund 7, another order", refund(as(ctx, "bob"), orders, 7, 2))
	expect(codes.InvalidArgument, "bob    Refund without an order", refund(as(ctx, "bob"), orders, 0, 2))

	act("What rejects stands before the lock, and a selector says whom it asks")
	expect(codes.Unauthenticated, "nobody Refund 42", refund(ctx, orders, 42, 2))
	_, err = healthpb.NewHealthClient(plain).Check(ctx, &healthpb.HealthCheckRequest{})
	expect(codes.OK, "nobody Health/Check", err)

	act("Carol's client has a plain retry policy, and waits as long as the server says")
	began := time.Now()
	time.AfterFunc(100*time.Millisecond, func() { _ = parcel.CloseSend() }) // Alice is done, and her lock is released
	err = refund(as(ctx, "carol"), stock, 42, 2)
	expect(codes.OK, fmt.Sprintf("carol  Refund 42, after %d ms", time.Since(began).Milliseconds()), err)

	act("A handler panics: recovery answers, and the lock is free again")
	expect(codes.Internal, "bob    Refund 42 in no parts", refund(as(ctx, "bob"), orders, 42, 0))
	expect(codes.OK, "alice  Refund 42", refund(as(ctx, "alice"), orders, 42, 2))
	return errors.Join(wrong...)
}

// dial returns a plain client, and one with the retry policy.
func dial(address string) (plain, patient *grpc.ClientConn, hangUp func(), err error) {
	insecurely := grpc.WithTransportCredentials(insecure.NewCredentials())
	if plain, err = grpc.NewClient(address, insecurely); err != nil {
		return nil, nil, nil, err
	}
	if patient, err = grpc.NewClient(address, insecurely, grpc.WithDefaultServiceConfig(retryPolicy)); err != nil {
		return nil, nil, nil, errors.Join(err, plain.Close())
	}
	return plain, patient, func() { _ = errors.Join(plain.Close(), patient.Close()) }, nil
}

// as is a context for calls by a user.
func as(ctx context.Context, user string) context.Context {
	return metadata.AppendToOutgoingContext(ctx, "authorization", "bearer "+user)
}

func refund(ctx context.Context, c orderspb.OrdersClient, id, parts int64) error {
	_, err := c.Refund(ctx, &orderspb.RefundRequest{OrderId: id, Parts: parts})
	return err
}

// pack opens a stream for order 42, sends the first item and waits for the answer. The stream has its lock then.
func pack(ctx context.Context, c orderspb.OrdersClient) (grpc.BidiStreamingClient[orderspb.PackRequest, orderspb.PackReply], error) {
	ss, err := c.Pack(metadata.AppendToOutgoingContext(ctx, "x-order", "42"))
	if err != nil {
		return nil, err
	}
	_ = ss.Send(&orderspb.PackRequest{Item: "book"}) // Recv knows why it could not
	_, err = ss.Recv()
	return ss, err
}

// describe is what a client can learn from an answer.
func describe(err error) string {
	s := status.Convert(err)
	text := []string{s.Code().String()}
	for _, d := range s.Details() {
		switch d := d.(type) {
		case *errdetails.ErrorInfo:
			text = append(text, d.GetReason())
		case *errdetails.RetryInfo:
			text = append(text, "RetryInfo "+d.GetRetryDelay().AsDuration().Round(time.Millisecond).String())
		}
	}
	return strings.Join(text, ", ")
}
