package etcdlock

import (
	"context"
	"errors"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"

	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

func aMinute(t *testing.T, s *Store) int64 {
	t.Helper()
	lease, err := s.lease(t.Context(), time.Minute)
	ok(t, err)
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

func TestASilentStreamIsLeftByWhoLeavesItAndAnotherIsOpenedForWhoWaits(t *testing.T) {
	t.Parallel()
	proxy := faultproxy.New(t, servers.Etcd(t).Addr())
	s := New(dial(t, proxy.Addr()))
	lease := aMinute(t, s)
	ok(t, s.prolong(t.Context(), lease))
	st := s.keepAlives.stream(s.client)
	proxy.BlackHole(true)
	told := make(chan error, 1)
	go func() { told <- s.prolong(t.Context(), lease) }()
	eventually(t, "it is asked for", func() bool {
		st.mu.Lock()
		defer st.mu.Unlock()
		return len(st.pending) == 1
	})
	for _, patience := range []time.Duration{silent / 4, silent} {
		if st.ctx.Err() != nil {
			t.Error("the stream was left before it was silent for long")
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		if err := s.prolong(ctx, lease); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		cancel()
	}
	if st.ctx.Err() == nil {
		t.Error("a silent stream is not left")
	}
	proxy.Heal()
	proxy.Reset()
	ok(t, <-told)
}

func TestTheStreamEndsWithCloseOrItsClient(t *testing.T) {
	t.Parallel()
	s := newWorld(t).store
	lease := aMinute(t, s)
	for _, end := range []func() error{func() error { return s.Close(t.Context()) }, s.client.Close} {
		ok(t, s.prolong(t.Context(), lease)) // over another one than before
		st := s.keepAlives.stream(s.client)
		ok(t, end())
		if st.ctx.Err() == nil {
			t.Error("a stream is left")
		}
	}
	if err := s.prolong(t.Context(), lease); err == nil {
		t.Error("prolonged without a connection")
	}
}
