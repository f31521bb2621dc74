package zklock_test

import (
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/zklock"
)

// stormSession is so short that a cut link can outlast it.
const stormSession = 2 * time.Second

func TestAStormKeepsOneHolderAtATime(t *testing.T) {
	t.Parallel()
	s := servers.ZooKeeper(t)
	backendtest.Storm{Process: process(t, s.Addr(), "/holdfast", stormSession), Faults: backendtest.ServerFaults(s)}.Run(t)
}

func TestAStormInAnEnsembleKeepsOneHolderAtATime(t *testing.T) {
	t.Parallel()
	backendtest.Slow(t)
	between := make(peers)
	members := servers.ZooKeeperEnsemble(t, between.behind(t))
	backendtest.Storm{
		Process: func() (driver.Driver, []*faultproxy.Proxy) {
			links := backendtest.Links(t, members)
			conn, session := connect(t, strings.Join(backendtest.Addrs(links), ","), stormSession)
			return zklock.New(conn, session), links
		},
		Faults: append(backendtest.Freezes(members...), backendtest.Fault{ // one that was killed would not find the others, through those links
			Name: "the leader is cut off from the others",
			Strike: func(pause func(time.Duration)) {
				between.cutOff(leader(t, members))
				pause(2 * stormSession)
				between.heal()
			},
		}),
	}.Run(t)
}
