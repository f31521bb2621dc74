package natslock_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/natslock"
)

func TestAStormKeepsOneHolderAtATime(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "nats.conf")
	ok(t, os.WriteFile(config, []byte("jetstream { sync_interval: always }"), 0o600)) // a single server must not forget
	s := servers.NATS(t, "--config", config)
	backendtest.Storm{Process: process(t, s.Addr(), newBucket(t, s.Addr())), Faults: backendtest.ServerFaults(s)}.Run(t)
}

func TestAStormInAClusterKeepsOneHolderAtATime(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	c := newCluster(t)
	backendtest.Storm{
		Process: func() (driver.Driver, []*faultproxy.Proxy) {
			links := backendtest.Links(t, c.members)
			return natslock.New(dial(t, strings.Join(backendtest.Addrs(links), ",nats://"), nats.DontRandomize()), "locks"), links
		},
		Faults: backendtest.ServerFaults(c.members...),
	}.Run(t)
}
