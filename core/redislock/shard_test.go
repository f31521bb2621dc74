package redislock_test

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
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
	waited         chan waited
}

// waited is what a call of Wait has returned.
type waited struct {
	driver.Grant
	err error
}

// told fails the test unless the waiter was told of its grant, and did not find it by a look.
func (l *line) told(t *testing.T) {
	t.Helper()
	w := <-l.waited
	ok(t, w.err)
	if w.TTL == 0 {
		t.Error("nobody has told it")
	}
}

func newLine(t *testing.T, c *servers.RedisCluster) *line {
	t.Helper()
	l := &line{
		cluster: c,
		holder:  redislock.New(dialCluster(t, c, true)), waiter: redislock.New(dialCluster(t, c, true)),
		held:   driver.Claim{Name: "name", Token: strings.Repeat("h", 22), TTL: time.Minute},
		wanted: driver.Claim{Name: "name", Token: strings.Repeat("w", 22), TTL: time.Minute},
		slot:   keySlot(t, c, "holdfast:name"),
		waited: make(chan waited, 1),
	}
	t.Cleanup(func() { ok(t, l.waiter.Close(context.WithoutCancel(t.Context()))) })
	for _, n := range c.Nodes {
		l.nodes = append(l.nodes, dial(t, &redis.Options{Addr: n.Addr()}))
	}
	_, err := l.holder.Acquire(t.Context(), l.held)
	ok(t, err)
	return l
}

// wait waits for the name.
func (l *line) wait(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	go func() {
		defer cancel()
		g, err := l.waiter.Wait(ctx, l.wanted)
		l.waited <- waited{g, err}
	}()
	l.standsInLine(t)
}

func (l *line) standsInLine(t *testing.T) {
	t.Helper()
	eventually(t, "the waiter stands in line", func() bool {
		for _, n := range l.nodes {
			if n.ZCard(t.Context(), "{holdfast:name}:v1:line").Val() == 1 { // a replica sends us away
				return true
			}
		}
		return false
	})
}

func (l *line) nodeOf(s *servers.Server) *redis.Client {
	return l.nodes[slices.Index(l.cluster.Nodes, s)]
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
	eventually(t, "it listens at the new node", func() bool {
		return len(l.nodeOf(to).PubSubShardChannels(t.Context(), "{holdfast:*}:v1:shard:*").Val()) == 1
	})
	for try := 0; ; try++ {
		ok(t, l.holder.Release(t.Context(), l.held))
		w := <-l.waited
		ok(t, w.err)
		if w.TTL > 0 {
			break
		}
		if try == 5 {
			t.Fatal("nobody has told it")
		}
		ok(t, l.waiter.Release(t.Context(), l.wanted)) // a look of its own came first: once more
		_, err := l.holder.Acquire(t.Context(), l.held)
		ok(t, err)
		l.wanted.Token = strings.Repeat(strconv.Itoa(try), 22)
		l.wait(t)
	}
	ok(t, l.waiter.Close(t.Context()))
	eventually(t, "the subscription ends", func() bool { sharded, _ := l.channels(t); return sharded == 0 })
}

// A release names the lock and its queue. While they may be at two nodes, it goes without the queue.
func TestAReleaseGoesOnWhileItsSlotMoves(t *testing.T) {
	t.Parallel()
	l := newLine(t, servers.Cluster(t))
	l.wait(t)
	l.releaseInMidMove(t)
	ok(t, (<-l.waited).err) // by a look
}

// releaseInMidMove releases the lock when one key of its slot, whichever it is, has moved.
func (l *line) releaseInMidMove(t *testing.T) {
	t.Helper()
	from, to := l.cluster.Owner(l.slot), l.cluster.Nodes[0]
	if from == to {
		to = l.cluster.Nodes[1]
	}
	l.cluster.BeginMove(l.slot, from, to)
	l.cluster.MoveKeys(l.slot, 1, from, to)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ok(t, l.holder.Release(ctx, l.held))
	l.cluster.EndMove(l.slot, from, to)
}

// As on Redis 6.2: the release cannot read the queue in the middle of a move, so it tells nobody, and no subscription
// ends. A waiter looks again by itself.
func TestAReleaseWhileItsSlotMovesIsFoundWithoutShardedChannels(t *testing.T) {
	t.Parallel()
	l := newLine(t, servers.Cluster(t, "--rename-command", "SSUBSCRIBE", "", "--rename-command", "SPUBLISH", ""))
	locks := clusterLocker(t, dialCluster(t, l.cluster, true))
	got := make(chan error, 1)
	go func() { got <- locks.Do(t.Context(), l.held.Name, func(context.Context) error { return nil }) }()
	l.standsInLine(t)
	l.releaseInMidMove(t)
	ok(t, <-got)
}

func TestWaitersInAClusterWithoutShardedChannelsAreTold(t *testing.T) {
	t.Parallel()
	l := newLine(t, servers.Cluster(t, "--rename-command", "SSUBSCRIBE", "", "--rename-command", "SPUBLISH", ""))
	l.wait(t)
	if sharded, plain := l.channels(t); sharded != 0 || plain != 1 {
		t.Errorf("%d sharded channels, %d plain ones", sharded, plain)
	}
	ok(t, l.holder.Release(t.Context(), l.held))
	l.told(t)
}

// Whoever chooses the names that a process waits for must not choose how many connections it has.
func TestInClusterTheSubscriptionsAtANodeAreBounded(t *testing.T) {
	t.Parallel()
	const perNode, most = 24, 16
	c := servers.Cluster(t)
	holder := redislock.New(dialCluster(t, c, true))
	waiter := clusterLocker(t, dialCluster(t, c, true))
	var names, late []string // in slots of their own; as many as may be listened to at a time are late
	at := make(map[*servers.Server]int)
	for i, seen := 0, make(map[int]bool); len(names) < 3*perNode; i++ {
		name := fmt.Sprint("name-", i)
		slot := keySlot(t, c, "holdfast:"+name)
		node := c.Owner(slot)
		if seen[slot] || at[node] == perNode {
			continue
		}
		seen[slot] = true
		if at[node]++; at[node] > perNode-most {
			late = append(late, name)
		}
		names = append(names, name)
	}
	held := func(name string) driver.Claim {
		return driver.Claim{Name: name, Token: strings.Repeat("h", 22), TTL: 5 * time.Minute}
	}
	var waiting sync.WaitGroup
	for _, name := range names {
		_, err := holder.Acquire(t.Context(), held(name))
		ok(t, err)
		waiting.Go(func() {
			if err := waiter.Do(t.Context(), name, func(context.Context) error { return nil }); err != nil {
				t.Error(err)
			}
		})
	}
	var masters []*redis.Client
	for _, n := range c.Nodes[:3] {
		masters = append(masters, dial(t, &redis.Options{Addr: n.Addr()}))
	}
	rdb := dialCluster(t, c, true)
	inLine := func(n int) func() bool {
		return func() bool {
			there := 0
			for _, name := range names {
				there += int(rdb.ZCard(t.Context(), "{holdfast:"+name+"}:v1:line").Val())
			}
			return there == n
		}
	}
	listening := func(what string, want int) {
		t.Helper()
		eventually(t, what, func() bool {
			full := true
			for _, there := range masters {
				channels := len(there.PubSubShardChannels(t.Context(), "*").Val())
				clients := strings.Count(there.Do(t.Context(), "client", "list", "type", "pubsub").String(), "laddr=")
				if clients > most {
					t.Fatalf("%d connections at a node", clients)
				}
				full = full && channels == want
			}
			return full
		})
	}
	eventually(t, "all stand in line", inLine(len(names)))
	listening("as many listen as may", most)
	for _, name := range names {
		if !slices.Contains(late, name) {
			ok(t, holder.Release(t.Context(), held(name)))
		}
	}
	eventually(t, "the first are served, told or not", inLine(len(late)))
	listening("those who are left listen", most)
	for _, name := range late {
		ok(t, holder.Release(t.Context(), held(name)))
	}
	waiting.Wait()
	listening("nobody listens", 0)
}
