package etcdlock_test

import (
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/etcdlock"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// longTTL outlives what a test does meanwhile.
const longTTL = 30 * time.Second

// world is a server of its own, a Locker behind a proxy, and another with a good connection.
type world struct {
	server *servers.Server
	proxy  *faultproxy.Proxy
	direct *clientv3.Client
	locks  *core.Locker
	other  *core.Locker
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{server: servers.Etcd(t)}
	w.proxy = faultproxy.New(t, w.server.Addr())
	w.direct = dial(t, w.server.Addr())
	w.locks = locker(t, etcdlock.New(dial(t, w.proxy.Addr())))
	w.other = locker(t, etcdlock.New(w.direct))
	ok(t, acquire(t, w.locks, "warm").Release(t.Context()))
	return w
}

func (w *world) leases(t *testing.T) int {
	t.Helper()
	answer, err := w.direct.Leases(t.Context())
	ok(t, err)
	return len(answer.Leases)
}

// leaseOf is the lease that keeps the first key below a prefix.
func (w *world) leaseOf(t *testing.T, prefix string) clientv3.LeaseID {
	t.Helper()
	var lease clientv3.LeaseID
	eventually(t, "there is a key below "+prefix, func() bool {
		answer, err := w.direct.Get(t.Context(), prefix, clientv3.WithPrefix())
		ok(t, err)
		if len(answer.Kvs) > 0 {
			lease = clientv3.LeaseID(answer.Kvs[0].Lease)
		}
		return len(answer.Kvs) > 0
	})
	return lease
}

func TestAWaiterNoticesThatItsEntryIsLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.other, "name")
	got := backendtest.Next(t, w.locks, "name")
	first := w.leaseOf(t, "holdfast/name\x00queue/")
	_, err := w.direct.Revoke(t.Context(), first)
	ok(t, err)
	if w.leaseOf(t, "holdfast/name\x00queue/") == first {
		t.Error("the same entry")
	}
	ok(t, x.Release(t.Context()))
	ok(t, <-got)
}
