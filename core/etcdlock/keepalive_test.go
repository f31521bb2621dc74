package etcdlock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// open says whether there is a stream.
func (k *keepAlives) open() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.now == nil {
		return false
	}
	select {
	case <-k.now.ended:
		return false
	default:
		return true
	}
}

func aMinute(t *testing.T, s *Store) int64 {
	t.Helper()
	lease, err := s.lease(t.Context(), time.Minute)
	noError(t, err)
	return int64(lease)
}

func TestAnAnswerToWhoHasLeftIsNobodyElses(t *testing.T) {
	t.Parallel()
	st := &stream{pending: make(map[int64][]chan error)}
	left, waits := prolongation{7, make(chan error, 1)}, prolongation{7, make(chan error, 1)}
	st.sends(left)
	st.sends(waits)
	st.answer(&pb.LeaseKeepAliveResponse{ID: 7, TTL: 60}) // to the first
	select {
	case err := <-waits.told:
		t.Fatalf("it was told of an earlier request: %v", err)
	default:
	}
	st.answer(&pb.LeaseKeepAliveResponse{ID: 7, TTL: 0})
	if err := <-waits.told; !errors.Is(err, rpctypes.ErrLeaseNotFound) {
		t.Error(err)
	}
	st.answer(&pb.LeaseKeepAliveResponse{ID: 7, TTL: 60}) // nobody asked
	if len(st.pending) != 0 || !st.since.IsZero() {
		t.Errorf("%d leases are waited for since %s", len(st.pending), st.since)
	}
}

func TestManyProlongationsShareAStreamWhichCloseEnds(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	lease := aMinute(t, s)
	for range 2 { // it is opened again
		st := s.keepAlives.stream(s.client)
		var all sync.WaitGroup
		for range 50 {
			all.Go(func() { noError(t, s.prolong(t.Context(), lease)) })
		}
		all.Wait()
		if s.keepAlives.stream(s.client) != st {
			t.Error("another stream")
		}
		noError(t, s.Close(t.Context()))
		if s.keepAlives.open() {
			t.Error("a stream after Close")
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
		st := s.keepAlives.stream(s.client)
		st.mu.Lock()
		defer st.mu.Unlock()
		return len(st.pending) == 1
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
		open     bool
	}{{silent / 4, true}, {silent, false}} {
		ctx, cancel := context.WithTimeout(t.Context(), c.patience)
		began := time.Now()
		if err := s.prolong(ctx, lease); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		if late := time.Since(began) - c.patience; late > time.Second {
			t.Errorf("it came back %s late", late)
		}
		cancel()
		backendtest.Eventually(t, "streams", func() bool { return s.keepAlives.open() == c.open })
	}
	proxy.Heal()
	proxy.Reset()
	noError(t, s.prolong(t.Context(), lease))
}

func TestTheStreamEndsWithItsClient(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	noError(t, s.prolong(t.Context(), aMinute(t, s)))
	noError(t, s.client.Close())
	backendtest.Eventually(t, "no stream is left", func() bool { return !s.keepAlives.open() })
	if err := s.prolong(t.Context(), 7); err == nil {
		t.Error("prolonged without a connection")
	}
}
