package redislock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// line is two processes of which one holds a name and the other one waits for it.
type line struct {
	cluster        *servers.RedisCluster
	holder, waiter *redislock.Store
	held, wanted   driver.Claim
	nodes          []*redis.Client
	slot           int
	waited         chan error
}

func newLine(t *testing.T, c *servers.RedisCluster) *line {
	t.Helper()
	l := &line{
		cluster: c,
		holder:  redislock.New(dialCluster(t, c, true)), waiter: redislock.New(dialCluster(t, c, true)),
		held:   driver.Claim{Name: "name", Token: strings.Repeat("h", 22), TTL: time.Minute},
		wanted: driver.Claim{Name: "name", Token: strings.Repeat("w", 22), TTL: time.Minute},
		slot:   keySlot(t, c, "holdfast:name"),
		waited: make(chan error, 1),
	}
	t.Cleanup(func() { ok(t, l.waiter.CloseIdle()) })
	for _, n := range c.Nodes {
		l.nodes = append(l.nodes, dial(t, &redis.Options{Addr: n.Addr()}))
	}
	_, err := l.holder.Acquire(t.Context(), l.held)
	ok(t, err)
	return l
}

// wait waits until the name may be free. Nothing but a message tells before the holder's TTL
// has passed, which is far away.
func (l *line) wait(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	go func() {
		defer cancel()
		err := redis.ErrClosed // it cannot tell: core polls, and asks again
		for errors.Is(err, redis.ErrClosed) {
			err = l.waiter.Wait(ctx, l.wanted)
		}
		l.waited <- err
	}()
	eventually(t, "the waiter stands in line", func() bool {
		for _, n := range l.nodes {
			if n.ZCard(t.Context(), "{holdfast:name}:v1:line").Val() == 1 { // a replica sends us away
				return true
			}
		}
		return false
	})
}

func (l *line) channels(t *testing.T) (sharded, plain int) {
	t.Helper()
	for _, n := range l.nodes {
		sharded += len(n.PubSubShardChannels(t.Context(), "{holdfast:*}:v1:shard:*").Val())
		plain += len(n.PubSubChannels(t.Context(), "*holdfast*").Val())
	}
	return sharded, plain
}

func TestWaitersInClusterAreToldThroughAChannelInTheSlot(t *testing.T) {
	t.Parallel()
	l := newLine(t, servers.Cluster(t))
	l.wait(t)
	if sharded, plain := l.channels(t); sharded != 1 || plain != 0 {
		t.Errorf("%d sharded channels, %d plain ones", sharded, plain)
	}
	from, to := l.cluster.Owner(l.slot), l.cluster.Nodes[0]
	if from == to {
		to = l.cluster.Nodes[1]
	}
	l.cluster.BeginMove(l.slot, from, to)
	l.cluster.EndMove(l.slot, from, to)
	ok(t, <-l.waited) // the server has ended the subscription: look again
	l.wait(t)
	eventually(t, "it listens at the new node", func() bool { sharded, _ := l.channels(t); return sharded == 1 })
	ok(t, l.holder.Release(t.Context(), l.held))
	ok(t, <-l.waited)
	ok(t, l.waiter.CloseIdle())
	eventually(t, "the subscription ends", func() bool { sharded, _ := l.channels(t); return sharded == 0 })
}

func TestWaitersInAClusterWithoutShardedChannelsAreTold(t *testing.T) {
	t.Parallel()
	l := newLine(t, servers.Cluster(t, "--rename-command", "SSUBSCRIBE", "", "--rename-command", "SPUBLISH", ""))
	l.wait(t)
	if sharded, plain := l.channels(t); sharded != 0 || plain != 1 {
		t.Errorf("%d sharded channels, %d plain ones", sharded, plain)
	}
	ok(t, l.holder.Release(t.Context(), l.held))
	ok(t, <-l.waited)
}
