package servers

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"
)

const (
	clusterMasters = 3
	clusterSlots   = 16384
	// clusterBound is for a cluster to agree, on a loaded machine.
	clusterBound = 60 * time.Second
)

// RedisCluster is a Redis Cluster that belongs to a test: three masters with a replica each.
//
// A master of which nothing is heard for three seconds is replaced by its replica. Slots
// have no owner meanwhile, and by the default of Redis the whole cluster then answers
// CLUSTERDOWN.
type RedisCluster struct {
	tb    testing.TB
	args  []string
	Nodes []*Server // first the masters, as they were at the start, then the replica of each
}

// Cluster starts a Redis Cluster and returns once every node says that it is complete. args
// are added to the command line of each node; see [Redis].
func Cluster(tb testing.TB, args ...string) *RedisCluster {
	tb.Helper()
	c := &RedisCluster{tb: tb}
	c.args = append([]string{
		"--cluster-enabled", "yes", "--cluster-node-timeout", "3000", "--repl-diskless-sync-delay", "0",
		"--cluster-replica-validity-factor", "0", "--cluster-allow-replica-migration", "no",
	}, args...)
	for range 2 * clusterMasters {
		c.Nodes = append(c.Nodes, c.node())
	}
	c.deal()
	c.meet()
	for i, replica := range c.Nodes[clusterMasters:] {
		master := c.ID(c.Nodes[i])
		c.eventually("a replica knows its master", func() error {
			_, err := ask(replica.Addr(), "CLUSTER", "REPLICATE", master)
			return err
		})
	}
	c.AwaitComplete()
	return c
}

// Addrs are the addresses of all nodes, of those that do not run too.
func (c *RedisCluster) Addrs() []string {
	addrs := make([]string, len(c.Nodes))
	for i, n := range c.Nodes {
		addrs[i] = n.Addr()
	}
	return addrs
}

// deal gives each master its share of the slots.
func (c *RedisCluster) deal() {
	c.tb.Helper()
	for i, master := range c.Nodes[:clusterMasters] {
		from, to := i*clusterSlots/clusterMasters, (i+1)*clusterSlots/clusterMasters-1
		words := []string{"CLUSTER", "ADDSLOTS"} // servers older than Redis 7 do not know ADDSLOTSRANGE
		for slot := from; slot <= to; slot++ {
			words = append(words, strconv.Itoa(slot))
		}
		c.do(master, words...)
		c.do(master, "CLUSTER", "SET-CONFIG-EPOCH", strconv.Itoa(i+1))
	}
}

// meet makes the nodes know each other.
func (c *RedisCluster) meet() {
	c.tb.Helper()
	for _, n := range c.Nodes[1:] {
		c.introduce(n)
	}
}

// introduce makes the first node know another one.
func (c *RedisCluster) introduce(n *Server) {
	c.tb.Helper()
	host, port, _ := strings.Cut(n.Announced(), ":")
	c.do(c.Nodes[0], "CLUSTER", "MEET", host, port)
}

// node starts a node.
func (c *RedisCluster) node() *Server {
	c.tb.Helper()
	return start(c.tb, redisProduct(c.args))
}

// AwaitComplete returns once every node that runs sees all slots served, and every replica
// is in step with its master.
func (c *RedisCluster) AwaitComplete() {
	c.tb.Helper()
	for _, n := range c.Nodes {
		if n.PID() == 0 {
			continue
		}
		c.eventually("the cluster is complete", func() error { return c.complete(n) })
	}
}

func (c *RedisCluster) complete(n *Server) error {
	info, err := ask(n.Addr(), "CLUSTER", "INFO")
	if err != nil {
		return err
	}
	for _, want := range []string{"cluster_state:ok", fmt.Sprintf("cluster_known_nodes:%d", len(c.Nodes))} {
		if !strings.Contains(fmt.Sprint(info), want) {
			return fmt.Errorf("not %s: %s", want, info)
		}
	}
	role, err := ask(n.Addr(), "INFO", "replication")
	if err == nil && strings.Contains(fmt.Sprint(role), "master_link_status:down") {
		err = fmt.Errorf("a replica without its master: %s", role)
	}
	return err
}

// ID is what the cluster calls a node.
func (c *RedisCluster) ID(n *Server) string {
	c.tb.Helper()
	return fmt.Sprint(c.do(n, "CLUSTER", "MYID"))
}

// Owner is the running node that serves a slot, as the node itself says.
func (c *RedisCluster) Owner(slot int) *Server {
	c.tb.Helper()
	var owner *Server
	c.eventually("a slot has an owner", func() error {
		for _, n := range c.Nodes {
			if n.PID() != 0 && c.serves(n, slot) {
				owner = n
				return nil
			}
		}
		return fmt.Errorf("nobody serves slot %d", slot)
	})
	return owner
}

// serves says whether n calls itself the master of a slot.
func (c *RedisCluster) serves(n *Server, slot int) bool {
	shards, err := ask(n.Addr(), "CLUSTER", "SLOTS")
	if err != nil {
		return false
	}
	all, _ := shards.([]any)
	for _, s := range all { // {from, to, {address, port, …}, replica, …}
		s, _ := s.([]any)
		if len(s) < 3 || s[0].(int64) > int64(slot) || s[1].(int64) < int64(slot) {
			continue
		}
		master, _ := s[2].([]any)
		return len(master) > 1 && fmt.Sprint(master[1]) == strconv.Itoa(n.port)
	}
	return false
}

// BeginMove begins to move a slot. Until [RedisCluster.EndMove], a key that is not yet there
// is asked for at the new node.
func (c *RedisCluster) BeginMove(slot int, from, to *Server) {
	c.tb.Helper()
	number := strconv.Itoa(slot)
	c.do(to, "CLUSTER", "SETSLOT", number, "IMPORTING", c.ID(from))
	c.do(from, "CLUSTER", "SETSLOT", number, "MIGRATING", c.ID(to))
}

// MoveKeys moves the keys of a slot that are there, n at most, and says how many they were.
func (c *RedisCluster) MoveKeys(slot, n int, from, to *Server) int {
	c.tb.Helper()
	keys, _ := c.do(from, "CLUSTER", "GETKEYSINSLOT", strconv.Itoa(slot), strconv.Itoa(n)).([]any)
	for _, key := range keys {
		c.eventually("a key moves", func() error { // the new node may have no memory for it now
			_, err := ask(from.Addr(), "MIGRATE", "127.0.0.1", strconv.Itoa(to.port), fmt.Sprint(key), "0", "5000")
			return err
		})
	}
	return len(keys)
}

// EndMove moves what is left, and gives the slot to its new node.
func (c *RedisCluster) EndMove(slot int, from, to *Server) {
	c.tb.Helper()
	for c.MoveKeys(slot, 100, from, to) > 0 {
		continue
	}
	number, id := strconv.Itoa(slot), c.ID(to)
	c.do(to, "CLUSTER", "SETSLOT", number, "NODE", id)
	c.do(from, "CLUSTER", "SETSLOT", number, "NODE", id)
}

func (c *RedisCluster) do(n *Server, args ...string) any {
	c.tb.Helper()
	reply, err := ask(n.Addr(), args...)
	if err != nil {
		c.tb.Fatalf("servers: %v", err)
	}
	return reply
}

func (c *RedisCluster) eventually(what string, is func() error) {
	c.tb.Helper()
	await(c.tb, clusterBound, what, is)
}

// await fails the test unless something comes true within a bound.
func await(tb testing.TB, bound time.Duration, what string, is func() error) {
	tb.Helper()
	deadline := time.Now().Add(bound)
	for {
		err := is()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			tb.Fatalf("servers: not within %v: %s: %v", bound, what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}
