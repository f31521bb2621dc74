package servers

import (
	"fmt"
	"net"
	"slices"
	"strings"
)

// Add starts another master, which has no slots yet, and returns it once all nodes know it.
func (c *RedisCluster) Add() *Server {
	c.tb.Helper()
	n := c.node()
	c.Nodes = append(c.Nodes, n)
	c.introduce(n)
	c.AwaitComplete()
	return n
}

// Remove has all nodes forget a master that has neither slots nor a replica, and ends it.
func (c *RedisCluster) Remove(n *Server) {
	c.tb.Helper()
	id := c.ID(n)
	n.Kill() // it would tell the others of itself
	c.Nodes = slices.DeleteFunc(c.Nodes, func(other *Server) bool { return other == n })
	for _, other := range c.Nodes {
		c.do(other, "CLUSTER", "FORGET", id)
	}
	c.AwaitComplete()
}

// MoveSlots moves slots with all their keys, one after the other, as a resharding does.
func (c *RedisCluster) MoveSlots(slots []int, from, to *Server) {
	c.tb.Helper()
	for _, slot := range slots {
		c.BeginMove(slot, from, to)
		c.EndMove(slot, from, to)
	}
}

// Replica is a running node that follows a master.
func (c *RedisCluster) Replica(master *Server) *Server {
	c.tb.Helper()
	var replica *Server
	c.eventually("a master has a replica", func() error {
		for _, n := range c.Nodes {
			if n.PID() == 0 || n == master {
				continue
			}
			reply, err := ask(n.Addr(), "ROLE")
			if err != nil {
				return err
			}
			role, _ := reply.([]any) // {"slave", address, port, …}
			if len(role) > 2 && role[0] == "slave" && net.JoinHostPort(fmt.Sprint(role[1]), fmt.Sprint(role[2])) == master.Announced() {
				replica = n
				return nil
			}
		}
		return fmt.Errorf("nobody follows %s", master.Announced())
	})
	return replica
}

// Promote asks a replica to take over. It does so in agreement with its master, and nothing is lost, unless how
// says "TAKEOVER": then it asks nobody. One that has taken over already is left alone.
func (c *RedisCluster) Promote(replica *Server, how ...string) {
	c.tb.Helper()
	_, err := ask(replica.Addr(), append([]string{"CLUSTER", "FAILOVER"}, how...)...)
	if err != nil && !strings.Contains(err.Error(), "to a replica") {
		c.tb.Fatalf("servers: %v", err)
	}
}
