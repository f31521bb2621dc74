package etcdlock_test

import (
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/etcdlock"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// eager connects again sooner than gRPC's default, which would spend most of a storm waiting.
var eager = grpc.WithConnectParams(grpc.ConnectParams{
	Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond}, MinConnectTimeout: time.Second,
})

func storm(t *testing.T, members ...*servers.Server) {
	t.Helper()
	backendtest.Storm{
		Process: func() (driver.Driver, []*faultproxy.Proxy) {
			links := backendtest.Links(t, members)
			return etcdlock.New(dialCluster(t, backendtest.Addrs(links), eager)), links
		},
		Faults: backendtest.ServerFaults(members...),
	}.Run(t)
}

func TestAStormKeepsOneHolderAtATime(t *testing.T) {
	t.Parallel()
	storm(t, servers.Etcd(t))
}

func TestAStormInAClusterKeepsOneHolderAtATime(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	storm(t, servers.EtcdCluster(t)...)
}
