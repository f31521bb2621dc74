package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	pb "go.etcd.io/etcd/api/v3/etcdserverpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// gated is a Store whose transactions wait for a gate, and are counted, unless they end before.
func gated(t *testing.T) (s *Store, gate chan struct{}, sent *atomic.Int32) {
	t.Helper()
	gate, sent = make(chan struct{}), new(atomic.Int32)
	wait := func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoke grpc.UnaryInvoker, opts ...grpc.CallOption) error {
		if _, ok := req.(*pb.TxnRequest); ok {
			sent.Add(1)
			select {
			case <-gate:
			case <-ctx.Done():
				sent.Add(-1)
			}
		}
		return invoke(ctx, method, req, reply, cc, opts...)
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: []string{servers.Etcd(t).Addr()}, Logger: zap.NewNop(), DialTimeout: time.Minute,
		DialOptions: []grpc.DialOption{grpc.WithChainUnaryInterceptor(wait)},
	})
	noError(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return New(client), gate, sent
}

// gathered waits until so many transactions wait for others.
func gathered(t *testing.T, s *Store, n int) {
	t.Helper()
	backendtest.Eventually(t, fmt.Sprint(n, " wait"), func() bool {
		s.share.mu.Lock()
		defer s.share.mu.Unlock()
		return len(s.share.waiting) == n
	})
}

// none is a look at a name, which finds nothing.
func none(ctx context.Context, s *Store, name string) error {
	_, err := s.read(ctx, driver.Claim{Name: name, Token: "token"})
	return err
}

func TestManyClaimsShareATransaction(t *testing.T) {
	t.Parallel()
	s, gate, sent := gated(t)
	s.share.flights = maxFlights // as if others were under way
	const claims = 100
	var looking sync.WaitGroup
	for i := range claims {
		looking.Go(func() { noError(t, none(t.Context(), s, fmt.Sprint("name-", i))) })
	}
	gathered(t, s, claims)
	close(gate)
	s.share.flights++
	s.depart()()
	looking.Wait()
	if n := sent.Load(); n != 1 {
		t.Errorf("%d transactions for %d looks", n, claims)
	}
}

// Else it would go on after them, and after Close, for as long as the server is away.
func TestASharedTransactionEndsWithTheLastOfItsCallers(t *testing.T) {
	t.Parallel()
	s, _, sent := gated(t)
	s.share.flights = maxFlights
	var looking sync.WaitGroup
	leave := make([]context.CancelFunc, 2)
	for i := range leave {
		ctx, cancel := context.WithCancel(t.Context())
		leave[i] = cancel
		looking.Go(func() {
			if err := none(ctx, s, fmt.Sprint("name-", i)); !errors.Is(err, errLeft) {
				t.Error(err)
			}
		})
	}
	gathered(t, s, 2)
	s.share.flights++
	s.depart()()
	backendtest.Eventually(t, "they go together", func() bool { return sent.Load() == 1 })
	leave[0]()
	leave[1]()
	looking.Wait()
	backendtest.Within(t, sharedFor/2, "it ends", func() bool { return sent.Load() == 0 })
}

// Of one that is refused nothing was executed, so who has not caused that gets an answer all the same.
func TestATransactionThatIsRefusedForOneIsExecutedForTheOthers(t *testing.T) {
	t.Parallel()
	s, gate, _ := gated(t)
	close(gate)
	s.share.flights = maxFlights
	put := func(name string, lease clientv3.LeaseID) error {
		key := s.lockKey(name)
		_, err := s.txn(t.Context(), name, []clientv3.Cmp{unchanged(key, nil)}, []clientv3.Op{clientv3.OpPut(key, "x", clientv3.WithLease(lease))}, nil)
		return err
	}
	bad, good := make(chan error, 1), make(chan error, 1)
	go func() { bad <- put("bad", 4711) }() // there is no such lease
	go func() { good <- put("good", clientv3.NoLease) }()
	gathered(t, s, 2)
	s.share.flights++
	s.depart()()
	noError(t, <-good)
	if err := <-bad; err == nil {
		t.Error("a lease that there is not")
	}
	if answer, err := s.client.Get(t.Context(), s.lockKey("good")); err != nil || len(answer.Kvs) == 0 {
		t.Errorf("it is not there: %v", err)
	}
}

// All have one revision, so a look could not tell what came before it from what came after it.
func TestWhatIsWrittenAboutANameGoesWithNothingElseAboutIt(t *testing.T) {
	t.Parallel()
	q := share{flights: maxFlights}
	write := []clientv3.Cmp{{}}
	for i, c := range []struct {
		part

		alone bool
	}{
		{part{name: "a"}, false}, {part{name: "a"}, false}, {part{name: "b", when: write}, false}, {part{name: "c"}, false},
		{part{name: "a", when: write}, true}, {part{name: "b"}, true}, {part{name: "b", when: write}, true}, {part{name: "d", when: write}, false},
	} {
		if alone := q.departs(&c.part); alone != c.alone {
			t.Errorf("number %d goes alone: %t", i, alone)
		}
	}
	if b := q.land(); len(b) != 5 || len(q.waiting) != 0 {
		t.Errorf("%d go together, %d go on waiting", len(b), len(q.waiting))
	}
}

func TestWhoLeavesBeforeItsTransactionIsSentSaysSo(t *testing.T) {
	t.Parallel()
	s, gate, sent := gated(t)
	defer close(gate)
	s.share.flights = maxFlights
	ctx, cancel := context.WithCancel(t.Context())
	told := make(chan error, 1)
	go func() { told <- none(ctx, s, "name") }()
	gathered(t, s, 1)
	cancel()
	if err := <-told; !errors.Is(err, driver.ErrNotSent) || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if n := sent.Load(); n != 0 {
		t.Errorf("%d were sent", n)
	}
	gathered(t, s, 0)
}

// A transaction that gets no answer holds up only those that are in it.
func TestAStuckTransactionHoldsNobodyUp(t *testing.T) {
	t.Parallel()
	s, gate, sent := gated(t)
	var looking sync.WaitGroup
	defer looking.Wait()
	defer close(gate)
	for i := range maxFlights + 1 {
		looking.Go(func() { noError(t, none(t.Context(), s, fmt.Sprint("name-", i))) })
	}
	backendtest.Eventually(t, "the last one goes", func() bool { return sent.Load() > maxFlights }) // the others count no more
}
