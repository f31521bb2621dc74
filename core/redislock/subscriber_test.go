package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// listening is how many channels somebody hears of.
func (p place) listening(t testing.TB) int {
	t.Helper()
	return len(p.direct.PubSubChannels(t.Context(), "*"+p.prefix+"*").Val())
}

// deaf is a client that may not listen on channels, for want of a permission.
func (p place) deaf(t *testing.T, by dialer) *redis.Client {
	t.Helper()
	p.do(t, "acl", "setuser", "deaf", "on", ">secret", "~*", "+@all", "resetchannels")
	return dial(t, &redis.Options{Addr: p.addr, Username: "deaf", Password: "secret", Dialer: by})
}

// A subscription is a hint. Who cannot have one, be it by a permission, stands in line all the same.
func TestWhoCannotSubscribeIsServedInItsTurn(t *testing.T) {
	t.Parallel()
	p, _ := own(t)
	busy, locks := p.locker(t), locker(t, p.deaf(t, nil))
	keepBusy(t, busy, acquire(t, busy, "name"))
	for range 3 {
		served(t, locks)
	}
	served(t, locks, core.WithShared())
}

// Redis writes first to the client whose first answer came last. So whoever is granted the name hears of it before the releaser has its
// answer, if that has had another one before.
func TestAReleaseGoesBehindAPingIfItsProcessHasWaited(t *testing.T) {
	t.Parallel()
	p, _ := own(t)
	var pings atomic.Int64 // with another command behind it, in one write
	var dials atomic.Int64
	locks := locker(t, dial(t, &redis.Options{Addr: p.addr, Dialer: func(ctx context.Context, network, addr string) (net.Conn, error) {
		dials.Add(1)
		return count("ping\r\n*", &pings)(ctx, network, addr)
	}}))
	ok(t, acquire(t, locks, "name").Release(t.Context()))
	if n := pings.Load(); n != 0 {
		t.Errorf("%d releases behind a PING, though nobody has waited", n)
	}
	x := acquire(t, p.locker(t), "name")
	got := p.waits(t, locks)
	ok(t, x.Release(t.Context()))
	y, z := <-got, acquire(t, locks, "other")
	before := dials.Load()
	ok(t, y.Release(t.Context()))
	ok(t, z.Release(t.Context()))
	if n := pings.Load(); n != 2 {
		t.Errorf("%d releases behind a PING, not both", n)
	}
	if n := dials.Load(); n != before { // into a network that does not answer, it would take seconds
		t.Errorf("%d dials, though single commands have a connection", n-before)
	}
}

// While it fails, it is not dialled all the time. Where one breaks, go-redis would dial by itself, besides us, while those who listen believe
// that they hear.
func TestASubscriptionThatFailsOrBreaksIsReplacedByOne(t *testing.T) {
	t.Parallel()
	p, _ := own(t)
	var tries atomic.Int64
	rdb := p.deaf(t, count("subscribe", &tries))
	x := acquire(t, p.locker(t), "name")
	began := time.Now()
	got := next(t, locker(t, rdb), "name")
	eventually(t, "it tries again", func() bool { return tries.Load() >= 3 })
	if took := time.Since(began); took < 250*time.Millisecond { // 100 ms apart, and further each time
		t.Errorf("tried %d times in %s", tries.Load(), took)
	}
	if n := p.listening(t); n != 0 {
		t.Errorf("%d channels", n)
	}
	p.do(t, "acl", "setuser", "deaf", "allchannels")
	eventually(t, "it listens", func() bool { return p.listening(t) == 1 })
	n := tries.Load()
	p.do(t, "client", "kill", "type", "pubsub")
	eventually(t, "it has noticed", func() bool { return tries.Load() > n })
	eventually(t, "it listens again", func() bool { return p.listening(t) == 1 })
	if more := tries.Load() - n; more != 1 {
		t.Errorf("subscribed %d times after one break", more)
	}
	ok(t, x.Release(t.Context()))
	ok(t, <-got)
}

// The dial goes on in the background, and ends by itself. The suite closes beside one who waits.
func TestCloseHeedsItsContextWhileASubscriptionIsDialled(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ok(t, acquire(t, w.locks, "before").Release(t.Context()))
	x := acquire(t, w.other, "name")
	w.proxy.BlackHoleNew(true)
	_, err := w.locks.Acquire(t.Context(), "name", core.WithWait(ttl/4))
	is(t, err, core.ErrHeld)
	const bound = ttl / 4
	const slack = time.Second // for a busy machine; the dial takes far longer
	ctx, stop := context.WithTimeout(t.Context(), bound)
	defer stop()
	began := time.Now()
	if err := w.locks.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("closed while a subscription is dialled: %v", err)
	}
	if took := time.Since(began); took > bound+slack {
		t.Errorf("took %s", took)
	}
	ok(t, w.locks.Close(t.Context())) // once that has ended
	ok(t, x.Release(t.Context()))
}

// edited is a connection that changes what is written to it.
type edited struct {
	net.Conn
	edit func([]byte) ([]byte, error)
}

func (c edited) Write(b []byte) (int, error) {
	out, err := c.edit(b)
	if err != nil {
		return 0, errors.Join(err, c.Close())
	}
	if _, err := c.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

func editing(edit func([]byte) ([]byte, error)) dialer {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		return edited{conn, edit}, err
	}
}

// count counts the writes that have a text.
func count(text string, times *atomic.Int64) dialer {
	return editing(func(b []byte) ([]byte, error) {
		if strings.Contains(string(b), text) {
			times.Add(1)
		}
		return b, nil
	})
}

// line is two processes of which one holds a name in a Cluster and the other one waits for it.
type line struct {
	cluster        *servers.RedisCluster
	holder, waiter driver.Driver
	held, wanted   driver.Claim
	nodes          []*redis.Client
	slot           int
	waited         chan driver.Grant
}

func newLine(t *testing.T, args ...string) *line {
	t.Helper()
	c := servers.Cluster(t, args...)
	l := &line{
		cluster: c, holder: store(t, dialCluster(t, c, true)), waiter: store(t, dialCluster(t, c, true)),
		held: claim("name", "holder"), wanted: claim("name", "waiter"), slot: keySlot(t, c, "holdfast:name"), waited: make(chan driver.Grant, 1),
	}
	for _, n := range c.Nodes {
		l.nodes = append(l.nodes, dial(t, &redis.Options{Addr: n.Addr()}))
	}
	grant(t, l.holder, l.held)
	return l
}

// wait waits for the name.
func (l *line) wait(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 20*time.Second)
	refused := make(chan struct{}, 16)
	c := l.wanted
	c.Heard = func(*driver.Held) { refused <- struct{}{} }
	go func() {
		defer cancel()
		g, err := l.waiter.Wait(ctx, c)
		check(t, err)
		l.waited <- g
	}()
	<-refused // it stands in line
}

// channels waits until there are so many sharded channels, and plain ones.
func (l *line) channels(t *testing.T, sharded, plain int) {
	t.Helper()
	eventually(t, fmt.Sprint("channels: ", sharded, plain), func() bool {
		s, p := 0, 0
		for _, n := range l.nodes {
			s += len(n.PubSubShardChannels(t.Context(), "{holdfast:*}:v1:shard:*").Val())
			p += len(n.PubSubChannels(t.Context(), "*holdfast*").Val())
		}
		return s == sharded && p == plain
	})
}

// told has the holder release the name until the waiter is told of its grant, and does not find it by a look. Looks are rare.
func (l *line) told(t *testing.T) {
	t.Helper()
	for try := range 5 {
		release(t, l.holder, l.held)
		if g := <-l.waited; g.TTL > 0 {
			return
		}
		release(t, l.waiter, l.wanted) // a look of its own came first: once more
		grant(t, l.holder, l.held)
		l.wanted.Token = strings.Repeat(strconv.Itoa(try), 22)
		l.wait(t)
	}
	t.Error("nobody has told it")
}

func TestWaitersInClusterAreToldThroughAChannelInTheSlot(t *testing.T) {
	t.Parallel()
	l := newLine(t)
	l.wait(t)
	l.channels(t, 1, 0)
	moving(t, l.cluster, 0, "holdfast:name")()
	at := l.nodes[slices.Index(l.cluster.Nodes, l.cluster.Owner(l.slot))]
	eventually(t, "it listens at the new node", func() bool { return len(at.PubSubShardChannels(t.Context(), "{holdfast:*}:v1:shard:*").Val()) == 1 })
	l.told(t)
	ok(t, l.waiter.(driver.Closer).Close(t.Context()))
	l.channels(t, 0, 0)
}

// As on Redis 6.2. In the middle of a move a release cannot read the queue, so it tells nobody, and no subscription ends: a
// waiter looks again by itself.
func TestWaitersInAClusterWithoutShardedChannelsAreTold(t *testing.T) {
	t.Parallel()
	l := newLine(t, "--rename-command", "SSUBSCRIBE", "", "--rename-command", "SPUBLISH", "")
	l.wait(t)
	l.channels(t, 0, 1)
	l.told(t)
	release(t, l.waiter, l.wanted)
	grant(t, l.holder, l.held)
	l.wanted = claim("name", "another")
	l.wait(t)
	end := moving(t, l.cluster, 1, "holdfast:name")
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	ok(t, l.holder.Release(ctx, l.held)) // a release names the lock and its queue; it goes without the queue
	end()
	<-l.waited
}

// Whoever chooses the names that a process waits for must not choose how many connections it has. Those that come free are used again.
func TestInClusterTheSubscriptionsAtANodeAreBounded(t *testing.T) {
	t.Parallel()
	const names, few, most = 120, 12, 16 // names are in slots of their own, a third of them at each of three masters
	c := servers.Cluster(t)
	holder, waiter := store(t, dialCluster(t, c, true)), clusterLocker(t, dialCluster(t, c, true))
	name := func(i int) string { return fmt.Sprint("name-", i) }
	masters := make([]*redis.Client, 3)
	for i := range masters {
		masters[i] = dial(t, &redis.Options{Addr: c.Nodes[i].Addr()})
	}
	slotOf := func(key string) int64 { return masters[0].ClusterKeySlot(t.Context(), key).Val() }
	listening := func(what string, are func(slots map[int64]bool) bool) {
		t.Helper()
		eventually(t, what, func() bool {
			slots := make(map[int64]bool)
			for _, there := range masters {
				if clients := strings.Count(there.Do(t.Context(), "client", "list", "type", "pubsub").String(), "laddr="); clients > most {
					t.Fatalf("%d connections at a node", clients)
				}
				for _, channel := range there.PubSubShardChannels(t.Context(), "*").Val() {
					slots[slotOf(channel)] = true
				}
			}
			return are(slots)
		})
	}
	var waiting sync.WaitGroup
	for i := range names {
		grant(t, holder, with(claim(name(i), "holder"), func(c *driver.Claim) { c.TTL = 5 * time.Minute }))
		waiting.Go(func() { check(t, waiter.Do(t.Context(), name(i), func(context.Context) error { return nil })) })
	}
	listening("as many listen as may", func(slots map[int64]bool) bool { return len(slots) == 3*most })
	for i := range names - few {
		release(t, holder, claim(name(i), "holder"))
	}
	for i := names - few; i < names; i++ {
		listening(name(i)+" listens", func(slots map[int64]bool) bool { return slots[slotOf("holdfast:"+name(i))] })
		release(t, holder, claim(name(i), "holder"))
	}
	waiting.Wait()
	listening("nobody listens", func(slots map[int64]bool) bool { return len(slots) == 0 })
}
