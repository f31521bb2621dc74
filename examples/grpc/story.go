package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/stats"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/examples/grpc/orderspb"
)

// story is what happens, told as it happens.
type story struct {
	out    io.Writer
	alice  orderspb.OrdersClient // a client of the first server
	bob    orderspb.OrdersClient // one of the second
	health healthpb.HealthClient
	stock  orderspb.OrdersClient // of the second server too, with a retry policy
	tries  attempts              // of stock
	parcel packing               // Alice's, under the lock of order 42
}

// tell returns what was not as promised.
func tell(ctx context.Context, out io.Writer, s *servers) error {
	t := &story{out: out, tries: make(attempts, 10)}
	first, err := dial(s.each[0].addr)
	if err != nil {
		return err
	}
	defer first.Close()
	second, err := dial(s.each[1].addr)
	if err != nil {
		return err
	}
	defer second.Close()
	patient, err := dial(s.each[1].addr, grpc.WithDefaultServiceConfig(retryPolicy), grpc.WithStatsHandler(t.tries))
	if err != nil {
		return err
	}
	defer patient.Close()
	t.alice, t.bob, t.stock = orderspb.NewOrdersClient(first), orderspb.NewOrdersClient(second), orderspb.NewOrdersClient(patient)
	t.health = healthpb.NewHealthClient(second)

	if err := t.rules(s.each[0].locked); err != nil {
		return err
	}
	return t.contention(ctx)
}

func (t *story) rules(locked []string) error {
	t.act("The rules stand beside the methods, in orderspb/orders.proto")
	for _, method := range locked {
		t.line(method, "locked")
	}
	if want := []string{"/orders.v1.Orders/Pack", "/orders.v1.Orders/Refund"}; !slices.Equal(locked, want) {
		return fmt.Errorf("locked: %q, want %q", locked, want)
	}
	return nil
}

// contention goes on for as long as Alice packs order 42.
func (t *story) contention(ctx context.Context) error {
	t.act("Alice packs order 42 at one server: a bidi stream, locked by its metadata")
	parcel, trailer, err := pack(as(ctx, "alice"), t.alice, 42)
	if err := t.expect(codes.OK, "alice  Pack 42, first item", err, trailer); err != nil {
		return err
	}
	t.parcel = parcel
	for _, step := range []func(context.Context) error{t.refusals, t.rejections, t.retries, t.panics} {
		if err := step(ctx); err != nil {
			return err
		}
	}
	return nil
}

// refusals are what others meet, at the other server.
func (t *story) refusals(ctx context.Context) error {
	t.act("Bob, at the other server, is answered at once")
	ctx = as(ctx, "bob")
	var trailer metadata.MD
	err := refund(ctx, t.bob, 42, 2, grpc.Trailer(&trailer))
	unary := t.expect(codes.Aborted, "bob    Refund 42", err, trailer)
	_, trailer, err = pack(ctx, t.bob, 42)
	stream := t.expect(codes.Aborted, "bob    Pack 42", err, trailer)
	_, err = t.bob.Track(ctx, &orderspb.TrackRequest{OrderId: 42})
	return errors.Join(unary, stream,
		t.expect(codes.OK, "bob    Track 42, not annotated", err, nil),
		t.expect(codes.OK, "bob    Refund 7, another order", refund(ctx, t.bob, 7, 2), nil),
		t.expect(codes.InvalidArgument, "bob    Refund without an order", refund(ctx, t.bob, 0, 2), nil))
}

// rejections come from the interceptors in front of the lock.
func (t *story) rejections(ctx context.Context) error {
	t.act("What rejects stands before the lock, and a selector says whom it asks")
	_, err := t.health.Check(ctx, &healthpb.HealthCheckRequest{})
	return errors.Join(
		t.expect(codes.Unauthenticated, "nobody Refund 42", refund(ctx, t.bob, 42, 2), nil),
		t.expect(codes.OK, "nobody Health/Check", err, nil))
}

// retries has Alice's stream end after the first refusal.
func (t *story) retries(ctx context.Context) error {
	t.act("Carol's client has a plain retry policy, and waits as long as the server says")
	answer := make(chan error, 1)
	go func() { answer <- refund(as(ctx, "carol"), t.stock, 42, 2) }()

	last, err := t.attempt(ctx)
	if err != nil {
		return err
	}
	if err := t.expect(codes.Aborted, "carol  Refund 42", last.Error, last.Trailer); err != nil {
		return err
	}
	if err := t.finish(); err != nil {
		return err
	}
	for status.Code(last.Error) == codes.Aborted { // on a busy machine Alice may take her time
		next, err := t.attempt(ctx)
		if err != nil {
			return err
		}
		waited := next.BeginTime.Sub(last.EndTime)
		t.line(fmt.Sprintf("carol  again by itself, %s later", seconds(waited)), describe(next.Error, next.Trailer))
		if waited < 200*time.Millisecond { // 250 ms ± 20%
			return errors.New("the retry policy of Carol's client did not wait as long as the server had said")
		}
		last = next
	}
	return <-answer
}

// attempt is the next of Carol's call.
func (t *story) attempt(ctx context.Context) (*stats.End, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	select {
	case end := <-t.tries:
		return end, nil
	case <-ctx.Done():
		return nil, errors.New("no further attempt of Carol's client")
	}
}

// finish packs one more item and ends the stream, and with it the lock.
func (t *story) finish() error {
	err := t.parcel.Send(&orderspb.PackRequest{Item: "pen"})
	if err == nil {
		_, err = t.parcel.Recv()
	}
	if err == nil {
		err = t.parcel.CloseSend()
	}
	if err == nil {
		if _, err = t.parcel.Recv(); errors.Is(err, io.EOF) {
			err = nil
		}
	}
	return t.expect(codes.OK, "alice  Pack 42, last item, done", err, nil)
}

// panics is a bug in a handler.
func (t *story) panics(ctx context.Context) error {
	t.act("A handler panics: recovery answers, and the lock is free again")
	return errors.Join(
		t.expect(codes.Internal, "bob    Refund 42 in no parts", refund(as(ctx, "bob"), t.bob, 42, 0), nil),
		t.expect(codes.OK, "alice  Refund 42", refund(as(ctx, "alice"), t.alice, 42, 2), nil))
}

func (t *story) act(title string) { _, _ = fmt.Fprintf(t.out, "\n%s\n", title) }

func (t *story) line(what, text string) {
	_, _ = fmt.Fprintf(t.out, "   %s%s %s\n", what, strings.Repeat(" ", max(0, 42-len(what))), text)
}

// expect tells what the answer was, and returns an error if it should have been another.
func (t *story) expect(want codes.Code, what string, got error, trailer metadata.MD) error {
	t.line(what, describe(got, trailer))
	if status.Code(got) != want {
		return fmt.Errorf("%s: %s, want %s", what, describe(got, trailer), want)
	}
	return nil
}
