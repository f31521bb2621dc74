package natslock_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/natslock"
)

// cluster is three servers, and a bucket with three replicas.
type cluster struct {
	members []*servers.Server
	js      jetstream.JetStream
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{members: servers.NATSCluster(t)}
	c.js = c.dial(t, 0, 1, 2)
	eventually(t, "the bucket is made", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := c.js.CreateOrUpdateKeyValue(ctx, natslock.Bucket("locks", 3))
		return err == nil
	})
	return c
}

// dial returns a client of some of the servers. It is connected to the first of them as long as that lives.
func (c *cluster) dial(t *testing.T, members ...int) jetstream.JetStream {
	t.Helper()
	addrs := make([]string, len(members))
	for i, m := range members {
		addrs[i] = c.members[m].Addr()
	}
	return dial(t, strings.Join(addrs, ",nats://"), nats.DontRandomize())
}

// leader is the number of the member that leads the stream of the bucket "locks".
func (c *cluster) leader(t *testing.T) (found int) {
	t.Helper()
	eventually(t, "the bucket has a leader", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		stream, err := c.js.Stream(ctx, "KV_locks")
		if err != nil || stream.CachedInfo().Cluster.Leader == "" {
			return false
		}
		found = int(stream.CachedInfo().Cluster.Leader[len("member-")] - '0')
		return true
	})
	return found
}

func TestALeaderThatIsKilledInMidAcquireCostsTimeAndNothingElse(t *testing.T) {
	t.Parallel()
	c := newCluster(t)
	ok(t, natslock.New(c.js, "locks").Check(t.Context()))
	lockers := []*core.Locker{ // one is connected to the leader first, one is not
		locker(t, natslock.New(c.dial(t, 0, 1, 2), "locks")), locker(t, natslock.New(c.dial(t, 1, 2, 0), "locks")),
	}
	steady := acquire(t, lockers[0], "steady", core.WithTTL(2*longTTL), core.WithRenewEvery(200*time.Millisecond))
	var readers []*core.Lease // who write one key
	for _, l := range slices.Repeat(lockers, 2) {
		readers = append(readers, acquire(t, l, "read", core.WithShared(), core.WithTTL(2*longTTL), core.WithRenewEvery(200*time.Millisecond)))
	}
	backendtest.LeadersDie(t, lockers, steady, func() *servers.Server { return c.members[c.leader(t)] }, core.WithTTL(5*time.Second))
	for _, x := range readers {
		_, err := lockers[0].TryAcquire(t.Context(), "read")
		is(t, err, core.ErrHeld)
		renewed(t, x)
		ok(t, x.Release(t.Context()))
	}
	ok(t, acquire(t, lockers[1], "read").Release(t.Context()))
}
