package etcdlock_test

import (
	"context"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/etcdlock"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

func dialCluster(t *testing.T, addrs []string, options ...grpc.DialOption) *clientv3.Client {
	t.Helper()
	client, err := clientv3.New(clientv3.Config{
		Endpoints: addrs, Logger: zap.NewNop(), DialTimeout: time.Minute, DialOptions: options,
		DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second, // a member that is killed is noticed
	})
	ok(t, err)
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// leader is the member that leads.
func leader(t *testing.T, members []*servers.Server) (found *servers.Server) {
	t.Helper()
	client := dialCluster(t, backendtest.Addrs(members))
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
		locker(t, etcdlock.New(dialCluster(t, backendtest.Addrs(members)))), locker(t, etcdlock.New(dialCluster(t, backendtest.Addrs(members)))),
	}
	steady := acquire(t, lockers[0], "steady", core.WithRenewEvery(200*time.Millisecond))
	backendtest.LeadersDie(t, lockers, steady, func() *servers.Server { return leader(t, members) }, core.WithTTL(5*time.Second))
}
