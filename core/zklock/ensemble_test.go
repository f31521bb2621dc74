package zklock

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// through returns a Locker that is a client of any of the servers.
func through(t *testing.T, timeout time.Duration, members ...*servers.Server) *core.Locker {
	t.Helper()
	conn, session := connect(t, strings.Join(backendtest.Addrs(members), ","), timeout)
	return locker(t, New(conn, session))
}

// leader is the index of the server that leads.
func leader(t *testing.T, members []*servers.Server) (found int) {
	t.Helper()
	eventually(t, "there is a leader", func() bool {
		for i, m := range members {
			if m.PID() != 0 && strings.Contains(tell(t, m.Addr(), "srvr"), "Mode: leader") {
				found = i
				return true
			}
		}
		return false
	})
	return found
}

// peers are the links between the servers of an ensemble: for followers, and for elections.
type peers map[[2]int][]*faultproxy.Proxy

func (links peers) behind(t *testing.T) func(from, to int, addr string) string {
	return func(from, to int, addr string) string {
		p, link := faultproxy.New(t, addr), [2]int{from, to}
		links[link] = append(links[link], p)
		if from < to && len(links[link]) == 2 {
			p.Refuse(true) // else the other one would dial back, past all proxies
		}
		return p.Addr()
	}
}

// cutOff has one server hear nothing of the others.
func (links peers) cutOff(alone int) {
	for link, proxies := range links {
		for _, p := range proxies {
			p.BlackHole(link[0] == alone || link[1] == alone)
		}
	}
}

// heal lets all hear each other. From then on a server may dial past the proxies, too: else one that was cut off could
// not come back.
func (links peers) heal() {
	for _, proxies := range links {
		for _, p := range proxies {
			p.Heal()
		}
	}
}

// A leader that is cut off from the others is one to its clients for a while. What it says of their sessions counts no
// more.
func TestALeaderThatIsCutOffKeepsNobodysLease(t *testing.T) {
	t.Parallel()
	links := make(peers)
	members := servers.ZooKeeperEnsemble(t, links.behind(t))
	alone := leader(t, members)
	inside := through(t, 4*time.Second, members[alone])
	outside := through(t, longSession/2, members[(alone+1)%3], members[(alone+2)%3])
	x := acquire(t, inside, "name", core.WithRenewEvery(200*time.Millisecond))
	ok(t, acquire(t, outside, "another").Release(t.Context()))
	renewed(t, x)
	links.cutOff(alone)
	var y *core.Lease
	backendtest.Within(t, 2*longSession, "the others have a leader, and have given the session up", func() bool {
		lease, err := outside.Acquire(t.Context(), "name", core.WithWait(2*longSession))
		if err != nil { // they are electing still
			is(t, err, core.ErrUnavailable)
			return false
		}
		y = lease
		return true
	})
	if x.Context().Err() == nil {
		t.Error("two holders")
	}
	is(t, x.Err(), core.ErrLost)
	backendtest.Grows(t, y.Fence(), x.Fence())
	_, err := inside.TryAcquire(t.Context(), "another")
	is(t, err, core.ErrUnavailable)
	links.heal()
	eventually(t, "it is one of the ensemble again", func() bool {
		z, err := inside.TryAcquire(t.Context(), "another")
		return err == nil && z.Release(t.Context()) == nil
	})
	eventually(t, "it knows who holds the name", func() bool {
		_, err := inside.TryAcquire(t.Context(), "name")
		if err == nil {
			t.Fatal("two holders")
		}
		return errors.Is(err, core.ErrHeld)
	})
	ok(t, y.Release(t.Context()))
}
