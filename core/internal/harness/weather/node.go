//go:build linux

package weather

import (
	"context"
	"net"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// node is a server of the run's service.
type node struct {
	server  *servers.Server
	admin   *redis.Client
	watcher *monitor // nil if nobody watches it

	mu     sync.Mutex // held while it is paused, or is not there
	unseen sync.Mutex // held while nobody watches one that is watched
}

// service is where the locks of a run are.
type service struct {
	kind     string
	nodes    []*node
	addrs    []string // what clients are told
	cluster  *servers.RedisCluster
	sentinel *servers.RedisSentinel

	sentinels []*redis.Client
	gates     *gates     // nil where there are no partitions
	changing  sync.Mutex // held while servers change their parts
}

const quorumNodes = 5

// newService starts the servers.
func newService(r *run, kind string) *service {
	s := &service{kind: kind}
	pass := ""
	var started []*servers.Server
	switch kind {
	case One, Plain:
		started = []*servers.Server{servers.Redis(r.tb, mayNotSpeak...)}
	case Redlock:
		for range quorumNodes {
			started = append(started, servers.Redis(r.tb))
		}
	case Cluster:
		s.gates = newGates(r.tb, r.Workers)
		s.cluster = servers.ClusterBehind(r.tb, s.gates.peer, mayNotSpeak...)
		started = s.cluster.Nodes
		for _, n := range started {
			s.addrs = append(s.addrs, n.Announced())
		}
	case Sentinel, Replicas:
		s.gates = newGates(r.tb, r.Workers)
		s.sentinel = servers.SentinelBehind(r.tb, s.gates.peer, password, mayNotSpeak...)
		started, s.addrs, pass = s.sentinel.Nodes, s.sentinel.Addrs(), password
		for _, watcher := range s.sentinel.Sentinels {
			s.sentinels = append(s.sentinels, newNode(r, watcher, pass, false).admin)
			for i := range r.Workers {
				s.gates.worker(i, watcher.Addr())
			}
		}
	default:
		r.tb.Fatalf("no such service: %q", kind)
	}
	for _, srv := range started {
		s.nodes = append(s.nodes, newNode(r, srv, pass, s.decides()))
		if s.decides() {
			s.addrs = append(s.addrs, srv.Addr())
		}
	}
	return s
}

// decides says whether what the servers do decides who has a name: not where one of them may
// have forgotten what another one did.
func (s *service) decides() bool { return s.cluster == nil && s.sentinel == nil }

func newNode(r *run, srv *servers.Server, pass string, watched bool) *node {
	n := &node{server: srv}
	n.admin = redis.NewClient(&redis.Options{
		Addr: srv.Addr(), ClientName: admin, Password: pass, MaxRetries: 5, PoolSize: 4, Dialer: n.dial,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	r.tb.Cleanup(func() { _ = n.admin.Close() })
	if watched {
		var err error
		if n.watcher, err = watch(srv.Addr(), nil); err != nil {
			r.tb.Fatal(err)
		}
	}
	return n
}

// dial connects the operator, who tells a name then: once somebody hears it.
func (n *node) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	n.unseen.Lock()
	defer n.unseen.Unlock()
	return (&net.Dialer{Timeout: time.Second}).DialContext(ctx, network, addr)
}

func (s *service) ledgers() (all []*Ledger, err error) {
	for _, n := range s.nodes {
		if n.watcher == nil {
			continue
		}
		all = append(all, readLedger(n.watcher.stop()))
		if n.watcher.failed != nil {
			err = n.watcher.failed
		}
	}
	return all, err
}

// keys are those of a server.
func (n *node) keys(r *run) []string {
	keys, err := n.admin.Keys(r.tb.Context(), "*").Result()
	if err != nil {
		r.tb.Errorf("KEYS: %v", err)
	}
	return keys
}

// connections are those that workers have to a server.
func (n *node) connections(ctx context.Context) (left []string, err error) {
	list, err := n.admin.ClientList(ctx).Result()
	for line := range strings.Lines(list) {
		if strings.Contains(line, " name=w") {
			left = append(left, strings.TrimSpace(line))
		}
	}
	return left, err
}

// leftovers are what workers have left at a server.
func (n *node) leftovers(r *run) (left []string) {
	for _, key := range n.keys(r) {
		if !strings.HasSuffix(key, "}:v1:fence") {
			left = append(left, "key "+key)
		}
	}
	channels, err := n.admin.PubSubChannels(r.tb.Context(), "*").Result()
	if err != nil {
		r.tb.Errorf("PUBSUB CHANNELS: %v", err)
	}
	for _, c := range channels {
		if !strings.HasPrefix(c, "__sentinel__") {
			left = append(left, "channel "+c)
		}
	}
	return left
}

// pause stops a server for a while.
func (n *node) pause(d time.Duration) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.server.Pause()
	time.Sleep(d)
	n.server.Resume()
}

// disconnect ends the workers' connections, not the one that watches.
func (n *node) disconnect(ctx context.Context) {
	lines, _ := n.connections(ctx) // a server that is not there has none
	for _, line := range lines {
		_, id, _ := strings.Cut(line, "id=")
		id, _, _ = strings.Cut(id, " ")
		n.admin.ClientKillByFilter(ctx, "id", id)
	}
}
