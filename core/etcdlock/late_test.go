package etcdlock_test

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/etcdlock"
)

// The transaction that puts an entry into the queue is still on its way when its caller leaves. It is executed
// after the one that leaves. The entry has to be gone long before its lease ends it.
func TestAnEntryThatComesLateIsLeft(t *testing.T) {
	t.Parallel()
	server := servers.Etcd(t)
	direct := dial(t, server.Addr())
	var armed atomic.Bool
	gate, executed, next := make(chan struct{}), make(chan struct{}), make(chan struct{}, 1)
	asks, cancel := context.WithCancel(t.Context())
	defer cancel()
	slow := func(ctx context.Context, req any, invoke func(context.Context) error) error {
		r, _ := req.(*pb.TxnRequest)
		queues := slices.ContainsFunc(r.GetSuccess(), func(op *pb.RequestOp) bool { return bytes.Contains(op.GetRequestPut().GetKey(), []byte("queue/")) })
		if !queues || !armed.CompareAndSwap(true, false) {
			err := invoke(ctx)
			select {
			case next <- struct{}{}:
			default:
			}
			return err
		}
		cancel()
		go func() {
			<-gate
			_ = invoke(context.WithoutCancel(ctx))
			close(executed)
		}()
		<-ctx.Done()
		return status.FromContextError(ctx.Err()).Err() // as grpc says it
	}
	far := etcdlock.Intercepted(t, server.Addr(), slow, nil)
	locks, other := locker(t, etcdlock.New(far)), locker(t, etcdlock.New(direct))
	ok(t, acquire(t, locks, "warm").Release(t.Context()))
	holder := acquire(t, other, "name")
	armed.Store(true)
	if _, err := locks.Acquire(asks, "name"); !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	for range 2 { // one may have come before the end; the other leaves the line, too early
		<-next
	}
	close(gate)
	<-executed
	began := time.Now()
	for stands := true; stands; {
		answer, err := direct.Get(t.Context(), "holdfast/name", clientv3.WithPrefix(), clientv3.WithKeysOnly())
		ok(t, err)
		stands = slices.ContainsFunc(answer.Kvs, func(kv *mvccpb.KeyValue) bool { return strings.Contains(string(kv.Key), "queue/") })
		if stands && time.Since(began) > 2*time.Second {
			t.Fatal("an entry that came late is not left: its lease ends it after 3 s")
		}
	}
	ok(t, holder.Release(t.Context()))
	x, err := other.TryAcquire(t.Context(), "name")
	if errors.Is(err, core.ErrHeld) {
		t.Errorf("a free name is held: %v", err)
		x = acquire(t, other, "name")
	}
	ok(t, x.Release(t.Context()))
}

// A user without permission to watch the range waits all the same, and does not keep the server busy.
func TestAWatchThatFailsAtOnceIsNotBegunAgainAtOnce(t *testing.T) {
	t.Parallel()
	const fails = 6
	var watches, looks atomic.Int64
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	deny := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		if strings.HasSuffix(method, "/Watch") {
			if watches.Add(1) == fails {
				cancel()
			}
			return nil, status.Error(codes.PermissionDenied, "etcdserver: permission denied")
		}
		return stream(ctx, desc, cc, method, opts...)
	}
	count := func(ctx context.Context, _ any, invoke func(context.Context) error) error {
		looks.Add(1)
		return invoke(ctx)
	}
	store := etcdlock.New(etcdlock.Intercepted(t, servers.Etcd(t).Addr(), count, deny))
	claim := driver.Claim{Name: "name", Token: "one", TTL: time.Minute}
	_, err := store.Acquire(t.Context(), claim)
	ok(t, err)
	waiter := claim
	waiter.Token = "two"
	began := time.Now()
	if _, err := store.Wait(ctx, waiter); err == nil {
		t.Error("granted")
	}
	// One of them is not the waiter's: it keeps the stream open.
	if n, took := looks.Load(), time.Since(began); n > 10*fails || took < (fails-2)*100*time.Millisecond {
		t.Errorf("%d commands and %d watches in %s", n, watches.Load(), took)
	}
}

// created has the revisions from which watches on a stream are to begin.
type created struct {
	grpc.ClientStream
	from chan<- int64
}

func (c created) SendMsg(m any) error {
	if r, ok := m.(*pb.WatchRequest); ok && r.GetCreateRequest() != nil {
		c.from <- r.GetCreateRequest().StartRevision
	}
	return c.ClientStream.SendMsg(m)
}

// What etcd should tell from an earlier revision on, it tells only every 100 ms. Between a look and its watch, others write: so
// each turn in a queue of many processes took 50 ms.
func TestAWatchBeginsNow(t *testing.T) {
	t.Parallel()
	from := make(chan int64, 100)
	see := func(ctx context.Context, desc *grpc.StreamDesc, cc *grpc.ClientConn, method string, stream grpc.Streamer, opts ...grpc.CallOption) (grpc.ClientStream, error) {
		s, err := stream(ctx, desc, cc, method, opts...)
		return created{s, from}, err
	}
	all := func(ctx context.Context, _ any, invoke func(context.Context) error) error { return invoke(ctx) }
	ctx, store := t.Context(), etcdlock.New(etcdlock.Intercepted(t, servers.Etcd(t).Addr(), all, see))
	owner := driver.Claim{Name: "name", Token: "owner", TTL: longTTL}
	_, err := store.Acquire(ctx, owner)
	ok(t, err)
	waiter := driver.Claim{Name: "name", Token: "waiter", TTL: longTTL, Heard: func(*driver.Held) {
		if err := store.Release(ctx, owner); err != nil && !errors.Is(err, driver.ErrNotOwner) {
			t.Error(err)
		}
	}}
	_, err = store.Wait(ctx, waiter)
	ok(t, err)
	ok(t, store.Release(ctx, waiter))
	ok(t, store.Close(ctx))
	if len(from) == 0 {
		t.Error("nothing is watched")
	}
	for len(from) > 0 {
		if revision := <-from; revision != 0 {
			t.Errorf("from revision %d on", revision)
		}
	}
}
