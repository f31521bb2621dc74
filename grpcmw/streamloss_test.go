package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

func TestLossEndsTheContextOfAStream(t *testing.T) {
	t.Parallel()
	for name, outcome := range map[string]func(context.Context) error{
		"handler returned nil":       func(context.Context) error { return nil },
		"handler returned ctx.Err":   func(ctx context.Context) error { return ctx.Err() },
		"handler returned the cause": context.Cause,
		"handler returned its own":   func(context.Context) error { return status.Error(codes.DataLoss, "own") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			locks, _ := lockers(t)
			client := serve(t, &shop{watch: func(_ *testpb.RefundRequest, ss watchServer) error {
				child, cancel := context.WithCancel(ss.Context())
				defer cancel()
				<-child.Done()
				wantLostCause(t, ss.Context(), "order:42")
				wantLostCause(t, child, "order:42")
				return outcome(ss.Context())
			}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(watch, orderKey, shortLived()...))...)
			ss, err := client.Watch(t.Context(), order())
			if err != nil {
				t.Fatal(err)
			}
			_, err = ss.Recv()
			wantLost(t, err, ss.Trailer())
		})
	}
}

func TestLossEndsTheContextOfAStreamLockedByMetadata(t *testing.T) {
	t.Parallel()
	locks, _ := lockers(t)
	client := serve(t, &shop{negotiate: func(ss negotiateServer) error {
		<-ss.Context().Done()
		wantLostCause(t, ss.Context(), "nightly")
		return nil
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(negotiate, "nightly", shortLived()...))...)
	ss := open(t, client)
	_, err := ss.Recv()
	wantLost(t, err, ss.Trailer())
}

func TestNothingPassesAStreamThatHasLostItsLock(t *testing.T) {
	t.Parallel()
	locks, _ := lockers(t)
	lostIt := make(chan struct{})
	client := serve(t, &shop{negotiate: func(ss negotiateServer) error {
		if _, err := ss.Recv(); err != nil {
			return err
		}
		received := make(chan error, 1)
		go func() { // waits for the client when the lock is lost
			_, err := ss.Recv()
			received <- err
		}()
		<-ss.Context().Done()
		close(lostIt)
		wantStatus(t, ss.Send(&testpb.Reply{Text: "stale"}), codes.Aborted, grpcmw.ReasonLost)
		wantStatus(t, ss.SendHeader(metadata.Pairs("stale", "1")), codes.Aborted, grpcmw.ReasonLost)
		wantStatus(t, <-received, codes.Aborted, grpcmw.ReasonLost)
		_, err := ss.Recv()
		wantStatus(t, err, codes.Aborted, grpcmw.ReasonLost)
		return nil
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(negotiate, "nightly", shortLived()...))...)
	ss := open(t, client)
	send(t, ss, order())
	<-lostIt
	send(t, ss, order())
	reply, err := ss.Recv()
	if reply != nil {
		t.Errorf("sent after the loss: %v", reply)
	}
	wantLost(t, err, ss.Trailer())
}

func TestLossOfAnInnerLeaseIsAnsweredAsSuch(t *testing.T) {
	t.Parallel()
	locks, _ := lockers(t)
	client := serve(t, &shop{negotiate: func(ss negotiateServer) error {
		if _, err := ss.Recv(); err != nil {
			return err
		}
		return locks.Do(ss.Context(), "inner", func(ctx context.Context) error {
			<-ctx.Done()
			return context.Cause(ctx)
		}, shortLived()...)
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(negotiate, "nightly"))...)
	ss := open(t, client)
	send(t, ss, order())
	_, err := ss.Recv()
	wantInside(t, err, ss.Trailer(), codes.Aborted, grpcmw.ReasonLost)
}

func TestStreamsSendAndReceiveFromTwoGoroutines(t *testing.T) {
	t.Parallel()
	locks, _ := lockers(t)
	var mu sync.Mutex
	inside := map[string]int{}
	enter := func(id string, by int) int {
		mu.Lock()
		defer mu.Unlock()
		inside[id] += by
		return inside[id]
	}
	client := serve(t, &shop{negotiate: func(ss negotiateServer) error {
		x, _ := core.FromContext(ss.Context())
		id := x.Name()
		if n := enter(id, 1); n != 1 {
			t.Errorf("%d streams inside %s", n, id)
		}
		defer enter(id, -1)
		sent := make(chan error, 1)
		go func() {
			err := ss.SetHeader(nil)
			for n := 0; err == nil && n < 5; n++ {
				err = ss.Send(&testpb.Reply{Text: fmt.Sprint(n)})
			}
			sent <- err
		}()
		var err error
		for n := 0; err == nil && n < 5; n++ {
			_, err = ss.Recv()
		}
		return errors.Join(err, <-sent)
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(negotiate, "order:{metadata:x-order|text}", core.WithWait(core.WaitForever)))...)
	var wg sync.WaitGroup
	for n := range 24 {
		wg.Go(func() {
			ss, err := client.Negotiate(metadata.AppendToOutgoingContext(t.Context(), "x-order", fmt.Sprint(n%3+1)))
			for i := 0; err == nil && i < 5; i++ {
				err = ss.Send(order())
			}
			for i := 0; err == nil && i < 5; i++ {
				_, err = ss.Recv()
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
