package etcdlock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core/driver"
)

// twice is what the client does when the connection breaks before the reply.
type twice struct{ clientv3.Lease }

func (l twice) Revoke(ctx context.Context, id clientv3.LeaseID) (*clientv3.LeaseRevokeResponse, error) {
	if _, err := l.Lease.Revoke(ctx, id); err != nil {
		return nil, err
	}
	return l.Lease.Revoke(ctx, id)
}

func TestAReleaseThatTheClientSendsTwiceIsNoLoss(t *testing.T) {
	t.Parallel()
	s := newWorld(t).store
	s.client.Lease = twice{s.client.Lease}
	c := driver.Claim{Name: "name", Token: "token", TTL: time.Minute}
	take(t, s, c)
	if err := s.Release(t.Context(), c); !driver.Explain(err).Open() {
		t.Errorf("its outcome is known: %v", err)
	}
}

func TestAWaiterWatchesOnlyTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	s := newWorld(t).store
	owner := driver.Claim{Name: "name", Token: "owner", TTL: time.Minute}
	take(t, s, owner)
	var waiters []driver.Claim
	watches := func(i int, want string) {
		t.Helper()
		now, err := s.read(t.Context(), waiters[i])
		ok(t, err)
		if key, _, err := s.before(t.Context(), waiters[i], now); key != want || err != nil {
			t.Errorf("number %d watches %q, not %q; %v", i, key, want, err)
		}
	}
	want := s.lockKey("name")
	for i, token := range []string{"a", "b", "c"} {
		waiters = append(waiters, driver.Claim{Name: "name", Token: token, TTL: time.Minute})
		ok(t, queue(t, s, waiters[i]))
		watches(i, want)
		want = s.entryKey(waiters[i])
	}
	if err := s.Release(t.Context(), waiters[1]); !errors.Is(err, driver.ErrNotOwner) {
		t.Errorf("release: %v", err)
	}
	watches(2, s.entryKey(waiters[0]))
	ok(t, s.Release(t.Context(), owner))
	watches(2, s.entryKey(waiters[0]))
}

// A lease can end between a look and its renewal.
func TestALeaseThatEndsDuringItsRenewalIsLost(t *testing.T) {
	t.Parallel()
	s := newWorld(t).store
	c := driver.Claim{Name: "name", Token: "token", TTL: time.Minute}
	take(t, s, c)
	now, err := s.read(t.Context(), c)
	ok(t, err)
	_, err = s.client.Revoke(t.Context(), clientv3.LeaseID(now.lock.Lease))
	ok(t, err)
	if err := s.extend(t.Context(), c, now); !errors.Is(err, driver.ErrNotOwner) {
		t.Errorf("renewal: %v", err)
	}
	if _, free, err := s.judge(t.Context(), c, now); free || err == nil {
		t.Error("granted again")
	}
}

// queue puts a claim at the end of the queue, as a look does.
func queue(t *testing.T, s *Store, c driver.Claim) error {
	t.Helper()
	now, err := s.read(t.Context(), c)
	ok(t, err)
	w := wait{Store: s, c: c, told: make(chan struct{}, 1)}
	_, err = w.queue(t.Context(), &now)
	return err
}

// intercepted returns a client whose requests go through unary, and whose streams are what stream makes of them, unless that is nil.
func intercepted(t *testing.T, addr string, unary func(ctx context.Context, req any, invoke func(context.Context) error) error, stream grpc.StreamClientInterceptor) *clientv3.Client {
	t.Helper()
	options := []grpc.DialOption{grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return unary(ctx, req, func(ctx context.Context) error { return invoker(ctx, method, req, reply, cc, opts...) })
		},
	)}
	if stream != nil {
		options = append(options, grpc.WithChainStreamInterceptor(stream))
	}
	return dialWith(t, clientv3.Config{Endpoints: []string{addr}, DialOptions: options})
}

// A proxy can send a transaction twice: what came first must not be put under another lease.
func TestAClaimThatIsExecutedTwiceKeepsItsFirstLease(t *testing.T) {
	t.Parallel()
	s := newWorld(t).store
	for limit, beside := range map[int]bool{driver.Readers: true, 2: false} {
		c := driver.Claim{Name: fmt.Sprint("name", limit), Token: "token", TTL: time.Minute, Limit: limit}
		if beside {
			other := c
			other.Token = "other"
			take(t, s, other)
		}
		now, err := s.read(t.Context(), c)
		ok(t, err)
		take(t, s, c)
		if answer, err := s.claim(t.Context(), c, now, clientv3.NoLease); err != nil || answer.Succeeded {
			t.Errorf("limit %d: granted, or %v", limit, err)
		}
	}
}

func take(t *testing.T, s *Store, c driver.Claim) {
	t.Helper()
	_, err := s.Acquire(t.Context(), c)
	ok(t, err)
}
