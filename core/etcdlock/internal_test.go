package etcdlock

import (
	"context"
	"errors"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
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
	s := open(t, servers.Etcd(t).Addr())
	s.client.Lease = twice{s.client.Lease}
	locks, err := core.New(s)
	noError(t, err)
	noError(t, locks.Do(t.Context(), "name", func(context.Context) error { return nil }))
	x, err := locks.TryAcquire(t.Context(), "name")
	noError(t, err)
	noError(t, x.Release(t.Context()))
}

func TestAWaiterWatchesOnlyTheOneBeforeIt(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	owner := driver.Claim{Name: "name", Token: "owner", TTL: time.Minute}
	_, err := s.Acquire(t.Context(), owner)
	noError(t, err)
	var waiters []driver.Claim
	watches := func(i int, want string) {
		t.Helper()
		now, err := s.read(t.Context(), waiters[i])
		noError(t, err)
		if key, _, err := s.before(t.Context(), waiters[i], now); key != want || err != nil {
			t.Errorf("number %d watches %q, not %q; %v", i, key, want, err)
		}
	}
	want := s.lockKey("name")
	for i, token := range []string{"a", "b", "c"} {
		waiters = append(waiters, driver.Claim{Name: "name", Token: token, TTL: time.Minute})
		noError(t, queue(t, s, waiters[i]))
		watches(i, want)
		want = s.entryKey(waiters[i])
	}
	if err := s.Release(t.Context(), waiters[1]); !errors.Is(err, driver.ErrNotOwner) {
		t.Errorf("release: %v", err)
	}
	watches(2, s.entryKey(waiters[0]))
	noError(t, s.Release(t.Context(), owner))
	watches(2, s.entryKey(waiters[0]))
}

// A lease can end between a look and its renewal.
func TestALeaseThatEndsDuringItsRenewalIsLost(t *testing.T) {
	t.Parallel()
	s := open(t, servers.Etcd(t).Addr())
	c := driver.Claim{Name: "name", Token: "token", TTL: time.Minute}
	_, err := s.Acquire(t.Context(), c)
	noError(t, err)
	now, err := s.read(t.Context(), c)
	noError(t, err)
	_, err = s.client.Revoke(t.Context(), clientv3.LeaseID(now.lock.Lease))
	noError(t, err)
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
	noError(t, err)
	w := wait{Store: s, c: c, told: make(chan struct{}, 1)}
	_, err = w.queue(t.Context(), &now)
	return err
}

func open(t *testing.T, addr string, opts ...Option) *Store {
	t.Helper()
	return New(Dial(t, clientv3.Config{Endpoints: []string{addr}}), opts...)
}

// Intercepted returns a client whose requests go through unary, and whose streams are what stream makes of them, unless that is nil.
func Intercepted(t *testing.T, addr string, unary func(ctx context.Context, req any, invoke func(context.Context) error) error, stream grpc.StreamClientInterceptor) *clientv3.Client {
	t.Helper()
	options := []grpc.DialOption{grpc.WithChainUnaryInterceptor(
		func(ctx context.Context, method string, req, reply any, cc *grpc.ClientConn, invoker grpc.UnaryInvoker, opts ...grpc.CallOption) error {
			return unary(ctx, req, func(ctx context.Context) error { return invoker(ctx, method, req, reply, cc, opts...) })
		},
	)}
	if stream != nil {
		options = append(options, grpc.WithChainStreamInterceptor(stream))
	}
	return Dial(t, clientv3.Config{Endpoints: []string{addr}, DialOptions: options})
}

// Older has a Store take its stream of watches for so much older.
func Older(s *Store, by time.Duration) {
	st := s.keepAlives.stream(s.client)
	st.mu.Lock()
	defer st.mu.Unlock()
	st.watches.began = st.watches.began.Add(-by)
}

// Dial returns a client that ends with the test.
func Dial(t testing.TB, c clientv3.Config) *clientv3.Client {
	t.Helper()
	c.Logger, c.DialTimeout = zap.NewNop(), time.Minute
	client, err := clientv3.New(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
