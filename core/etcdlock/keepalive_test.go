package etcdlock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

func (k *keepAlives) streams() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	return len(k.open)
}

func aMinute(t *testing.T, s *store) int64 {
	t.Helper()
	lease, err := s.lease(t.Context(), time.Minute)
	noError(t, err)
	return int64(lease)
}

func TestAnAnswerToWhoHasLeftIsNobodyElses(t *testing.T) {
	t.Parallel()
	var k keepAlives
	st := &stream{pending: make(map[int64][]*prolongation)}
	left, waits := &prolongation{lease: 7, done: make(chan struct{})}, &prolongation{lease: 7, done: make(chan struct{})}
	st.unsent, st.callers = []*prolongation{left}, 1
	k.now = st
	if lease, sent := k.next(st); lease != 7 || !sent {
		t.Fatal("nothing is sent")
	}
	st.heard = time.Now()
	st.cancel = func() {}
	k.leave(st, left)
	st.unsent = append(st.unsent, waits)
	k.next(st)
	k.answer(st, &pb.LeaseKeepAliveResponse{ID: 7, TTL: 60}) // to the first
	select {
	case <-waits.done:
		t.Fatal("it was told of an earlier request")
	default:
	}
	k.answer(st, &pb.LeaseKeepAliveResponse{ID: 7, TTL: 0})
	<-waits.done
	if !errors.Is(waits.err, rpctypes.ErrLeaseNotFound) {
		t.Error(waits.err)
	}
	k.answer(st, &pb.LeaseKeepAliveResponse{ID: 7, TTL: 60}) // nobody asked
	if len(st.pending) != 0 {
		t.Errorf("%d leases are waited for", len(st.pending))
	}
}

func TestManyProlongationsShareAStreamWhichCloseIdleEnds(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	lease := aMinute(t, s)
	for range 2 { // it is opened again
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { noError(t, s.prolong(t.Context(), lease)) })
		}
		all.Wait()
		if n := s.keepAlives.streams(); n != 1 {
			t.Errorf("%d streams", n)
		}
		noError(t, s.CloseIdle(t.Context()))
		if n := s.keepAlives.streams(); n != 0 {
			t.Errorf("%d streams after CloseIdle", n)
		}
	}
	if err := s.prolong(t.Context(), 4711); !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Errorf("a lease that there is not: %v", err)
	}
}

func TestABrokenStreamIsOpenedAgainForWhoWaits(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.New(t, servers.Etcd(t).Addr())
	s := open(t, proxy.Addr())
	lease := aMinute(t, s)
	noError(t, s.prolong(t.Context(), lease))
	proxy.BlackHole(true)
	told := make(chan error, 1)
	go func() { told <- s.prolong(t.Context(), lease) }()
	backendtest.Eventually(t, "it is asked for", func() bool {
		s.keepAlives.mu.Lock()
		defer s.keepAlives.mu.Unlock()
		return s.keepAlives.now != nil && len(s.keepAlives.now.pending) == 1
	})
	proxy.Heal()
	proxy.Reset()
	noError(t, <-told)
}

func TestWhoLeavesASilentStreamLeavesNothingAndTheNextOneOpensAnother(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.New(t, servers.Etcd(t).Addr())
	s := open(t, proxy.Addr())
	lease := aMinute(t, s)
	noError(t, s.prolong(t.Context(), lease))
	proxy.BlackHole(true)
	for _, c := range []struct {
		patience time.Duration
		streams  int
	}{{silent / 4, 1}, {silent, 0}} {
		ctx, cancel := context.WithTimeout(t.Context(), c.patience)
		began := time.Now()
		if err := s.prolong(ctx, lease); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if late := time.Since(began) - c.patience; late > time.Second {
			t.Errorf("it came back %s late", late)
		}
		cancel()
		backendtest.Eventually(t, "streams", func() bool { return s.keepAlives.streams() == c.streams })
	}
	proxy.Heal()
	proxy.Reset()
	noError(t, s.prolong(t.Context(), lease))
}

func TestTheStreamEndsWithItsClient(t *testing.T) {
	t.Parallel()
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{servers.Etcd(t).Addr()}, Logger: zap.NewNop(), DialTimeout: time.Minute})
	noError(t, err)
	s := newStore(client)
	noError(t, s.prolong(t.Context(), aMinute(t, s)))
	noError(t, client.Close())
	backendtest.Eventually(t, "no stream is left", func() bool { return s.keepAlives.streams() == 0 })
	if err := s.prolong(t.Context(), 7); err == nil {
		t.Error("prolonged without a connection")
	}
}
