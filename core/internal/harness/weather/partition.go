//go:build linux

package weather

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/drivertest/faultproxy"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// gates are the ways that a partition closes. They stand behind the workers' links, which may
// have faults of their own meanwhile.
type gates struct {
	tb      testing.TB
	peers   map[string]*faultproxy.Proxy   // by what stands behind it: what the other servers and the Sentinels use
	workers []map[string]*faultproxy.Proxy // by the server's own address, of each worker; to the Sentinels too
}

func newGates(tb testing.TB, workers int) *gates {
	g := &gates{tb: tb, peers: make(map[string]*faultproxy.Proxy)}
	for range workers {
		g.workers = append(g.workers, make(map[string]*faultproxy.Proxy))
	}
	return g
}

// peer makes the gate of a server, or of the bus of a Cluster's node.
func (g *gates) peer(addr string) string {
	g.peers[addr] = faultproxy.New(g.tb, addr)
	return g.peers[addr].Addr()
}

// to are the gates by which the other servers reach one.
func (g *gates) to(s *servers.Server) (all []*faultproxy.Proxy) {
	for _, addr := range []string{s.Addr(), s.BusAddr()} {
		if p := g.peers[addr]; p != nil {
			all = append(all, p)
		}
	}
	return all
}

// worker makes a worker's gate to a server, if there are to be any.
func (g *gates) worker(i int, addr string) string {
	if g == nil {
		return addr
	}
	p := faultproxy.New(g.tb, addr)
	g.workers[i][addr] = p
	return p.Addr()
}

// of are a worker's gates, by the address of the server.
func (g *gates) of(i int) map[string]*faultproxy.Proxy {
	if g == nil {
		return nil
	}
	return g.workers[i]
}

// ways are what a partition closes, and opens again.
type ways []func(dark bool)

func (w ways) dark(on bool) {
	for _, set := range w {
		set(on)
	}
}

// between are the ways between some servers with some workers, and all others. Those by which
// the other workers reach the first of the servers are apart.
func (g *gates) between(all, some []*servers.Server, cut []int) (most, first ways) {
	for _, s := range all {
		within := slices.Contains(some, s)
		for _, from := range all {
			if slices.Contains(some, from) == within {
				continue
			}
			for _, p := range g.to(s) {
				most = append(most, func(dark bool) { p.BlackHoleFrom(from.Source(), dark) })
			}
		}
		for i, gates := range g.workers {
			switch to := gates[s.Addr()].BlackHole; {
			case slices.Contains(cut, i) == within:
			case s == some[0]:
				first = append(first, to)
			default:
				most = append(most, to)
			}
		}
	}
	return most, first
}

// cut are the workers that a split leaves with the old master: not all of them.
func (r *run) cut(f Fault) (cut []int) {
	for i := range min(f.Span, r.Workers-1) {
		cut = append(cut, (f.Who+i)%r.Workers)
	}
	return cut
}

// split cuts a master off, with one of the Sentinels where there are some and with some of the workers, until the
// others have promoted another one and both have been there for a while. Then the servers meet again, and the old
// master is demoted. The workers of the other side do not reach it before: what it has granted since was to its
// own side.
func (r *run) split(ctx context.Context, f Fault, id string) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	s := r.service
	old, next := s.pair(ctx, f.Node)
	if old == nil {
		return
	}
	all, some := s.sides(old)
	most, toOld := s.gates.between(all, some, r.cut(f))
	toOld.dark(true)
	most.dark(true)
	alone := s.promotion(ctx, next)
	r.log.write(Event{At: alone, Kind: Turned, ID: id, Class: promoted})
	time.Sleep(f.For)
	r.log.write(Event{Kind: Turned, ID: id, Class: joined})
	most.dark(false)
	s.demotion(ctx, f, old, next)
	r.log.write(Event{Kind: Turned, ID: id, Class: demoted})
	wait(ctx, old.follows)
	toOld.dark(false)
	if ctx.Err() != nil {
		r.tb.Errorf("no split within %v", patience)
	}
}

// sides are all servers that can be cut off from one another, and those that stay with an old master.
func (s *service) sides(old *node) (all, some []*servers.Server) {
	if s.cluster != nil {
		return s.cluster.Nodes, []*servers.Server{old.server}
	}
	return slices.Concat(s.sentinel.Nodes, s.sentinel.Sentinels), []*servers.Server{old.server, s.sentinel.Sentinels[0]}
}

// demotion returns once a master that was cut off is none any more. In a Cluster it finds out by itself.
func (s *service) demotion(ctx context.Context, f Fault, old, next *node) {
	if s.cluster != nil {
		wait(ctx, func(ctx context.Context) bool { return !old.leads(ctx) })
		return
	}
	host, port, _ := net.SplitHostPort(next.server.Announced())
	due := time.Now().Add(f.For / 4) // Sentinel takes eight seconds
	wait(ctx, func(ctx context.Context) bool {
		return time.Now().After(due) && old.admin.ReplicaOf(ctx, host, port).Err() == nil
	})
}

// promotion waits until a server is the master, for the Sentinels but the first too, and says when it was last
// seen to be none.
func (s *service) promotion(ctx context.Context, next *node) (before int64) {
	const tie = 5 * time.Second // two who want to lead a failover may each get one vote
	begin := time.Now()
	before = now()
	wait(ctx, func(ctx context.Context) bool {
		at := now()
		if next.leads(ctx) {
			return s.cluster != nil || s.agree(ctx, next.server, s.sentinels[1:])
		}
		before = at
		if s.sentinel != nil && time.Since(begin) > tie {
			s.sentinels[1].Do(ctx, "sentinel", "failover", servers.MasterName)
		}
		return false
	})
	return before
}

// catchUp waits until the Sentinels know who leads. One that has not noticed the end of its last
// failover is stuck in it, for ten seconds and more, if the next one overtakes it.
func (s *service) catchUp(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	wait(ctx, func(ctx context.Context) bool {
		return s.sentinel == nil || slices.ContainsFunc(s.nodes, func(n *node) bool { return n.leads(ctx) && s.agree(ctx, n.server, s.sentinels) })
	})
}

// agree says whether some Sentinels call a server the master.
func (s *service) agree(ctx context.Context, master *servers.Server, sentinels []*redis.Client) bool {
	return !slices.ContainsFunc(sentinels, func(c *redis.Client) bool {
		addr, err := c.Do(ctx, "sentinel", "get-master-addr-by-name", servers.MasterName).StringSlice()
		return err != nil || net.JoinHostPort(addr[0], addr[1]) != master.Announced()
	})
}
