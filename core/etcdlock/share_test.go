package etcdlock

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/share"
)

// gated is a Store whose transactions wait for a gate, and are counted, unless they end before.
func gated(t *testing.T) (s *Store, gate chan struct{}, sent *atomic.Int32) {
	t.Helper()
	gate, sent = make(chan struct{}), new(atomic.Int32)
	wait := func(ctx context.Context, req any, invoke func(context.Context) error) error {
		if _, ok := req.(*pb.TxnRequest); ok {
			sent.Add(1)
			select {
			case <-gate:
			case <-ctx.Done():
				sent.Add(-1)
			}
		}
		return invoke(ctx)
	}
	return New(intercepted(t, servers.Etcd(t).Addr(), wait, nil)), gate, sent
}

// busy has transactions under way that no gate lets through, so that others gather. They count for a while: see package share.
func busy(t *testing.T, s *Store, sent *atomic.Int32) {
	t.Helper()
	for i := range share.MaxAlone {
		go func() { _, _ = s.read(t.Context(), driver.Claim{Name: fmt.Sprint("busy-", i), Token: "token"}) }()
	}
	eventually(t, "they are under way", func() bool { return sent.Load() == share.MaxAlone })
}

// Of one that is refused nothing was executed, so who has not caused that gets an answer all the same.
func TestATransactionThatIsRefusedForOneIsExecutedForTheOthers(t *testing.T) {
	t.Parallel()
	s, gate, sent := gated(t)
	busy(t, s, sent)
	put := func(name string, lease clientv3.LeaseID) error {
		key := s.lockKey(name)
		_, err := s.txn(t.Context(), name, []clientv3.Cmp{unchanged(key, nil)}, []clientv3.Op{clientv3.OpPut(key, "x", clientv3.WithLease(lease))}, nil)
		return err
	}
	bad, good := make(chan error, 1), make(chan error, 1)
	go func() { bad <- put("bad", 4711) }() // there is no such lease
	go func() { good <- put("good", clientv3.NoLease) }()
	eventually(t, "they go together", func() bool { return sent.Load() == share.MaxAlone+1 })
	close(gate)
	ok(t, <-good)
	if err := <-bad; err == nil {
		t.Error("a lease that there is not")
	}
	if n := sent.Load() - share.MaxAlone; n != 3 {
		t.Errorf("%d transactions, not one for both and then one for each", n)
	}
	if answer, err := s.client.Get(t.Context(), s.lockKey("good")); err != nil || len(answer.Kvs) == 0 {
		t.Errorf("it is not there: %v", err)
	}
}

// All have one revision, so a look could not tell what came before it from what came after it.
func TestWhatIsWrittenAboutANameGoesWithNothingElseAboutIt(t *testing.T) {
	t.Parallel()
	write := []clientv3.Cmp{{}}
	for _, c := range []struct {
		a, b  transaction
		apart bool
	}{
		{transaction{name: "a"}, transaction{name: "a"}, false},
		{transaction{name: "a"}, transaction{name: "a", when: write}, true},
		{transaction{name: "a", when: write}, transaction{name: "a"}, true},
		{transaction{name: "a", when: write}, transaction{name: "b", when: write}, false},
	} {
		if got := apart(c.a, c.b); got != c.apart {
			t.Errorf("%v and %v: %t", c.a, c.b, got)
		}
	}
}
