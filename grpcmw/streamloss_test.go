package grpcmw_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/grpcmw"
	"github.com/holdfast-go/holdfast/grpcmw/internal/testpb"
)

func TestLossEndsTheContextCapturedBeforeTheFirstMessage(t *testing.T) {
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
			client := serve(t, &shop{negotiate: func(ss negotiateServer) error {
				early := ss.Context()
				child, cancel := context.WithCancel(early)
				defer cancel()
				if _, err := ss.Recv(); err != nil {
					return err
				}
				<-child.Done()
				wantLostCause(t, early, "order:42")
				wantLostCause(t, child, "order:42")
				return outcome(early)
			}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(negotiate, orderKey, shortLived()...))...)
			ss := open(t, client)
			send(t, ss, order())
			_, err := ss.Recv()
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
		wantStatus(t, <-received, codes.Aborted, grpcmw.ReasonLost)
		_, err := ss.Recv()
		wantStatus(t, err, codes.Aborted, grpcmw.ReasonLost)
		return nil
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(negotiate, orderKey, shortLived()...))...)
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
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(negotiate, orderKey))...)
	ss := open(t, client)
	send(t, ss, order())
	_, err := ss.Recv()
	wantInside(t, err, ss.Trailer(), codes.Aborted, grpcmw.ReasonLost)
}

func TestReceiverThatOutlivesItsHandlerTakesNoLock(t *testing.T) {
	t.Parallel()
	locks, other := lockers(t)
	release := hold(t, other, "order:42")
	waiting, received := make(chan struct{}), make(chan error, 1)
	key := func(context.Context, *testpb.RefundRequest) (string, error) {
		close(waiting)
		return "order:42", nil
	}
	client := serve(t, &shop{negotiate: func(ss negotiateServer) error {
		go func() {
			_, err := ss.Recv()
			received <- err
		}()
		<-waiting // in Acquire, or about to be
		return nil
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethodFunc(negotiate, key, core.WithWait(time.Minute)))...)
	ss := open(t, client)
	send(t, ss, order())
	if _, err := ss.Recv(); err == nil {
		t.Error("a message")
	}
	if err := <-received; err == nil {
		t.Error("the receiver got a message without a handler")
	}
	release()
	comesFree(t, other, "order:42")
}

func TestStreamsSendAndReceiveFromTwoGoroutines(t *testing.T) {
	t.Parallel()
	locks, _ := lockers(t)
	var mu sync.Mutex
	inside := map[int64]int{}
	enter := func(id int64, by int) int {
		mu.Lock()
		defer mu.Unlock()
		inside[id] += by
		return inside[id]
	}
	client := serve(t, &shop{negotiate: func(ss negotiateServer) error {
		first, err := ss.Recv()
		if err != nil {
			return err
		}
		id := first.GetOrder().GetId()
		if n := enter(id, 1); n != 1 {
			t.Errorf("%d streams inside order:%d", n, id)
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
		for n := 0; err == nil && n < 5; n++ {
			_, err = ss.Recv()
		}
		return errors.Join(err, <-sent)
	}}, grpcmw.ServerOptions(locks, grpcmw.WithMethod(negotiate, orderKey, core.WithWait(core.WaitForever)))...)
	var wg sync.WaitGroup
	for n := range 24 {
		wg.Go(func() {
			ss, err := client.Negotiate(t.Context())
			for i := 0; err == nil && i < 6; i++ {
				err = ss.Send(&testpb.RefundRequest{Order: &testpb.Order{Id: int64(n%3 + 1)}})
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
