//go:build linux

package chaos

import (
	"context"
	"database/sql"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/natslock"
	"github.com/holdfast-go/holdfast/core/sqllock"
)

// node is a server of the run's service.
type node struct {
	server  *servers.Server
	admin   *redis.Client // nil if it is no Redis
	watcher *monitor      // nil if nobody watches it

	mu     sync.Mutex // held while it is paused, or is not there
	unseen sync.Mutex // held while nobody watches one that is watched
}

// service is where the locks of a run are.
type service struct {
	kind      string
	nodes     []*node
	addrs     []string // what clients are told
	cluster   *servers.RedisCluster
	sentinels *servers.RedisSentinel
	sentinel  *redis.Client     // an operator's, of one of them
	db        *sql.DB           // an operator's
	locks     inspect.Inspector // an operator's
	changing  sync.Mutex        // held while servers change their parts
}

// started are the servers of each kind of service but Redis's with several.
var started = map[string]func(r *run) []*servers.Server{
	One: func(r *run) []*servers.Server { return []*servers.Server{servers.Redis(r.tb)} },
	Redlock: func(r *run) (five []*servers.Server) {
		for range 5 {
			five = append(five, servers.Redis(r.tb))
		}
		return five
	},
	Postgres: func(r *run) []*servers.Server {
		return []*servers.Server{servers.Postgres(r.tb, "-c", "synchronous_commit=on", "-c", "max_connections=300")}
	},
	MySQL: func(r *run) []*servers.Server {
		return []*servers.Server{servers.MariaDB(r.tb, "--innodb-flush-log-at-trx-commit=2")}
	},
	SQLite: func(*run) []*servers.Server { return nil },
	Etcd:   func(r *run) []*servers.Server { return []*servers.Server{servers.Etcd(r.tb)} },
	Etcd3:  func(r *run) []*servers.Server { return servers.EtcdCluster(r.tb) },
	NATS: func(r *run) []*servers.Server { // a single server must not forget
		config := filepath.Join(r.dir, "nats.conf")
		backendtest.OK(r.tb, os.WriteFile(config, []byte("jetstream { sync_interval: always }"), 0o600))
		return []*servers.Server{servers.NATS(r.tb, "--config", config)}
	},
	NATS3:      func(r *run) []*servers.Server { return servers.NATSCluster(r.tb) },
	ZooKeeper:  func(r *run) []*servers.Server { return []*servers.Server{servers.ZooKeeper(r.tb)} },
	ZooKeeper3: func(r *run) []*servers.Server { return servers.ZooKeeperEnsemble(r.tb, nil) },
}

// newService starts the servers.
func newService(r *run, kind string) *service {
	s := &service{kind: kind}
	pass := ""
	var all []*servers.Server
	switch kind {
	case Cluster:
		s.cluster = servers.Cluster(r.tb)
		all = s.cluster.Nodes
	case Replicas:
		pass = password
		s.sentinels = servers.Sentinel(r.tb, password)
		all, s.addrs = s.sentinels.Nodes, s.sentinels.Addrs()
		s.sentinel = newNode(r, s.sentinels.Sentinels[0], pass, false).admin
	default:
		if started[kind] == nil {
			r.tb.Fatalf("no such service: %q", kind)
		}
		all = started[kind](r)
	}
	for _, srv := range all {
		s.nodes = append(s.nodes, newNode(r, srv, pass, kind == One || kind == Redlock))
		if kind != Replicas {
			s.addrs = append(s.addrs, srv.Announced())
		}
	}
	if kind == SQLite {
		s.addrs = []string{filepath.Join(r.dir, "locks.db")}
	}
	s.prepare(r)
	return s
}

// prepare makes what the locks are kept in, and an operator's client.
func (s *service) prepare(r *run) {
	ctx := r.tb.Context()
	switch s.kind {
	case Postgres, MySQL, SQLite:
		dialect, driverName, source := database(s.kind, s.addrs[0])
		text, err := sqllock.Schema(dialect)
		backendtest.OK(r.tb, err)
		s.db, err = sql.Open(driverName, source)
		backendtest.OK(r.tb, err)
		_, err = s.db.ExecContext(ctx, text)
		backendtest.OK(r.tb, err)
		r.tb.Cleanup(func() { _ = s.db.Close() })
	case NATS, NATS3:
		conn, js, err := dialNATS(s.addrs)
		backendtest.OK(r.tb, err)
		defer conn.Close()
		backendtest.Eventually(r.tb, "the bucket is made", func() bool {
			_, err := js.CreateOrUpdateKeyValue(ctx, natslock.Bucket(bucket, len(s.nodes)))
			return err == nil
		})
	}
	store, hangUp, err := WorkerConfig{Service: s.kind, Servers: s.addrs, Life: operator}.open()
	backendtest.OK(r.tb, err)
	s.locks, _ = store.(inspect.Inspector)
	r.tb.Cleanup(hangUp)
}

// operator is the name of the run's own connections.
const operator = "operator"

func newNode(r *run, srv *servers.Server, pass string, watched bool) *node {
	n := &node{server: srv}
	if r.isRedis() {
		n.admin = redis.NewClient(&redis.Options{
			Addr: srv.Addr(), ClientName: operator, Password: pass, MaxRetries: 5, PoolSize: 4, Dialer: n.dial,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		})
		r.tb.Cleanup(func() { _ = n.admin.Close() })
	}
	if watched {
		var err error
		n.watcher, err = watch(srv.Addr(), nil)
		backendtest.OK(r.tb, err)
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

// connections are those that workers have to a server.
func (n *node) connections(ctx context.Context) (left []string, err error) {
	list, err := n.admin.ClientList(ctx).Result()
	for line := range strings.Lines(list) {
		if strings.Contains(line, " name=w") {
			left = append(left, "connection "+strings.TrimSpace(line))
		}
	}
	return left, err
}

// leftovers are what workers have left at a server.
func (n *node) leftovers(r *run) (left []string) {
	keys, err := n.admin.Keys(r.tb.Context(), "*").Result()
	if err != nil {
		r.tb.Errorf("KEYS: %v", err)
	}
	for _, key := range keys {
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

func (n *node) leads(ctx context.Context) bool { return n.says(ctx, "role:master") }

func (n *node) follows(ctx context.Context) bool {
	return n.says(ctx, "role:slave") && n.says(ctx, "master_link_status:up")
}

func (n *node) says(ctx context.Context, what string) bool {
	return strings.Contains(n.admin.Info(ctx, "replication").Val(), what)
}

// agreed are the server that leads and the one that follows, once the Sentinels know of that. One that has not noticed the end
// of its last failover is stuck in it, for ten seconds and more, if the next one overtakes it.
func (s *service) agreed(r *run) (leads, follows *node) {
	leads, follows = s.nodes[0], s.nodes[1]
	backendtest.Eventually(r.tb, "one leads, and one follows", func() bool {
		if !leads.leads(r.tb.Context()) {
			leads, follows = follows, leads
		}
		return leads.leads(r.tb.Context()) && follows.follows(r.tb.Context())
	})
	s.sentinels.AwaitMaster(leads.server)
	return leads, follows
}

// failover has the replica take over for the master, which is killed or asked to step back, and returns when that one follows.
func (s *service) failover(r *run, f Fault) {
	ctx := r.tb.Context()
	old, next := s.agreed(r)
	old.mu.Lock()
	defer old.mu.Unlock()
	killed := f.Who%2 == 0
	if killed {
		old.server.Kill()
	}
	backendtest.Eventually(r.tb, "the other server leads", func() bool {
		s.sentinel.Do(ctx, "sentinel", "failover", servers.MasterName) // it does so by itself only once in a while
		time.Sleep(100 * time.Millisecond)
		return next.leads(ctx)
	})
	if killed {
		old.server.Restart()
	}
	host, port, _ := net.SplitHostPort(next.server.Announced())
	old.admin.ReplicaOf(ctx, host, port) // Sentinel would do so later
	backendtest.Eventually(r.tb, "the old master follows", func() bool { return old.follows(ctx) })
}

// move moves the slot of a name to another master, key by key.
func (s *service) move(ctx context.Context, f Fault) {
	slot := int(s.nodes[0].admin.ClusterKeySlot(ctx, prefix+f.Name).Val())
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
