package etcdlock

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

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
	store := New(intercepted(t, servers.Etcd(t).Addr(), count, deny))
	take(t, store, driver.Claim{Name: "name", Token: "one", TTL: time.Minute})
	began := time.Now()
	if _, err := store.Wait(ctx, driver.Claim{Name: "name", Token: "two", TTL: time.Minute}); err == nil {
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
	ctx, store := t.Context(), New(intercepted(t, servers.Etcd(t).Addr(), all, see))
	owner := driver.Claim{Name: "name", Token: "owner", TTL: longTTL}
	take(t, store, owner)
	waiter := driver.Claim{Name: "name", Token: "waiter", TTL: longTTL, Heard: func(*driver.Held) {
		if err := store.Release(ctx, owner); err != nil && !errors.Is(err, driver.ErrNotOwner) {
			t.Error(err)
		}
	}}
	_, err := store.Wait(ctx, waiter)
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
