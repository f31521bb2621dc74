package etcdlock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/etcdlock"
)

func dialCluster(t *testing.T, members []*servers.Server) *clientv3.Client {
	t.Helper()
	addrs := make([]string, len(members))
	for i, m := range members {
		addrs[i] = m.Addr()
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: addrs, Logger: zap.NewNop(), DialTimeout: time.Minute,
		DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second, // a member that is killed is noticed
	})
	ok(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// leader is the member that leads.
func leader(t *testing.T, members []*servers.Server) (found *servers.Server) {
	t.Helper()
	client := dialCluster(t, members)
	eventually(t, "there is a leader", func() bool {
		for _, m := range members {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			status, err := client.Status(ctx, m.Addr())
			cancel()
			if err == nil && status.Leader == status.Header.MemberId {
				found = m
				return true
			}
		}
		return false
	})
	return found
}

func TestALeaderThatIsKilledInMidAcquireCostsTimeAndNothingElse(t *testing.T) {
	t.Parallel()
	members := servers.EtcdCluster(t)
	lockers := []*core.Locker{
		locker(t, etcdlock.New(dialCluster(t, members))), locker(t, etcdlock.New(dialCluster(t, members))),
	}
	steady := acquire(t, lockers[0], "steady", core.WithRenewEvery(200*time.Millisecond))
	var inside, turns atomic.Int32
	var last atomic.Uint64
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	var wg sync.WaitGroup
	for i := range 4 { // so one of them is always acquiring
		wg.Go(func() {
			for ctx.Err() == nil {
				x, err := lockers[i%2].Acquire(ctx, "contended", core.WithTTL(5*time.Second))
				if err != nil {
					if !errors.Is(err, context.Canceled) && !errors.Is(err, core.ErrUnavailable) {
						t.Error(err)
					}
					continue
				}
				if inside.Add(1) != 1 || last.Swap(x.Fence()) >= x.Fence() {
					t.Errorf("two holders, or fences that do not grow: %d", x.Fence())
				}
				turns.Add(1)
				inside.Add(-1)
				_ = x.Release(t.Context()) // what cannot be confirmed ends with its TTL
			}
		})
	}
	for range 2 {
		dead := leader(t, members)
		dead.Kill()
		before := turns.Load()
		eventually(t, "turns go on under another leader", func() bool { return turns.Load() > before+3 })
		renewed(t, steady)
		dead.Restart()
	}
	cancel()
	wg.Wait()
	ok(t, steady.Release(t.Context()))
}
