//go:build linux

package weather

import (
	"context"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// patience is for servers that have to agree, on a loaded machine.
const patience = 30 * time.Second

// readonly makes a server the replica of nobody for a while: it keeps what it has, and takes
// no writes.
func (n *node) readonly(ctx context.Context, d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.admin.ReplicaOf(ctx, "127.0.0.1", "1")
	time.Sleep(d)
	n.admin.ReplicaOf(ctx, "NO", "ONE")
}

// failover has another server take over for one, which is killed or asked to step back, and
// returns when that one follows.
func (s *service) failover(ctx context.Context, tb testing.TB, f Fault) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	old, next := s.pair(ctx, f.Node)
	if old == nil {
		return
	}
	old.mu.Lock()
	defer old.mu.Unlock()
	killed := f.Who%2 == 0
	switch {
	case killed:
		old.server.Kill()
	case s.cluster != nil:
		next.admin.Do(ctx, "cluster", "failover", "takeover") // asks nobody, the old one neither
	}
	for ctx.Err() == nil && !next.leads(ctx) {
		if s.sentinel != nil { // which does so by itself only once in a while
			s.sentinels[0].Do(ctx, "sentinel", "failover", servers.MasterName)
		}
		time.Sleep(100 * time.Millisecond)
	}
	if killed {
		old.server.Restart()
	}
	if s.sentinel != nil { // which would do so later
		host, port, _ := net.SplitHostPort(next.server.Announced())
		old.admin.ReplicaOf(ctx, host, port)
	}
	wait(ctx, old.follows)
	if ctx.Err() != nil {
		tb.Errorf("no failover within %v", patience)
	}
}

// pair is a server that leads, and the one that follows it.
func (s *service) pair(ctx context.Context, i int) (leads, follows *node) {
	half := len(s.nodes) / 2
	a, b := s.nodes[i%half], s.nodes[i%half+half]
	switch {
	case a.leads(ctx) && b.follows(ctx):
		return a, b
	case b.leads(ctx) && a.follows(ctx):
		return b, a
	default:
		return nil, nil
	}
}

func (n *node) leads(ctx context.Context) bool { return n.says(ctx, "role:master") }

func (n *node) follows(ctx context.Context) bool {
	return n.says(ctx, "role:slave") && n.says(ctx, "master_link_status:up")
}

func (n *node) says(ctx context.Context, what string) bool {
	return strings.Contains(n.admin.Info(ctx, "replication").Val(), what)
}

// wait returns when it is so, or ctx ends.
func wait(ctx context.Context, is func(context.Context) bool) {
	for ctx.Err() == nil && !is(ctx) {
		time.Sleep(20 * time.Millisecond)
	}
}

// move moves the slot of a name to another master, key by key.
func (s *service) move(ctx context.Context, f Fault) {
	slot := int(s.nodes[0].admin.ClusterKeySlot(ctx, Prefix+f.Name).Val())
	from := s.cluster.Owner(slot)
	for _, n := range s.nodes {
		if n.server == from || !n.leads(ctx) {
			continue
		}
		s.cluster.BeginMove(slot, from, n.server)
		s.cluster.MoveKeys(slot, 1, from, n.server)
		time.Sleep(f.For)
		s.cluster.EndMove(slot, from, n.server)
		return
	}
}

// settle waits until the servers agree again.
func (s *service) settle() {
	switch {
	case s.cluster != nil:
		s.cluster.AwaitComplete()
	case s.sentinel != nil:
		for _, n := range s.nodes {
			if n.leads(context.Background()) {
				s.sentinel.AwaitMaster(n.server)
			}
		}
	}
}
