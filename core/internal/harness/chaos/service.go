//go:build linux

package chaos

import (
	"cmp"
	"context"
	"database/sql"
	"net"
	"slices"
	"strings"
	"time"

	_ "github.com/go-sql-driver/mysql" // as users have it
	"github.com/go-zookeeper/zk"
	_ "github.com/jackc/pgx/v5/stdlib" // as users have it
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	_ "modernc.org/sqlite" // as users have it

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/etcdlock"
	"github.com/holdfast-go/holdfast/core/natslock"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/core/redlock"
	"github.com/holdfast-go/holdfast/core/sqllock"
	"github.com/holdfast-go/holdfast/core/sqllock/pgxlisten"
	"github.com/holdfast-go/holdfast/core/zklock"
)

// The services that a run can have.
const (
	One      = "one"      // a redis-server
	Redlock  = "redlock"  // five of them
	Cluster  = "cluster"  // three masters and their replicas
	Replicas = "replicas" // Sentinel's master and replica: a grant counts once both have it

	Postgres   = "postgres"
	MySQL      = "mysql" // MariaDB, where that is installed
	SQLite     = "sqlite"
	Etcd       = "etcd"
	Etcd3      = "etcd3" // with three members
	NATS       = "nats"
	NATS3      = "nats3"
	ZooKeeper  = "zookeeper"
	ZooKeeper3 = "zookeeper3"
)

var (
	redises = []string{One, Redlock, Cluster, Replicas}
	sqls    = []string{Postgres, MySQL, SQLite}
	others  = []string{Postgres, MySQL, Etcd, Etcd3, NATS, NATS3, ZooKeeper, ZooKeeper3} // they keep what they have on their disks
	linked  = slices.Concat(redises, others)                                             // all that is not a file
)

// lifeIn is the TTL of all leases in a service: short, so that a run sees many of them end.
func lifeIn(service string) time.Duration {
	if strings.HasPrefix(service, Etcd) || strings.HasPrefix(service, ZooKeeper) { // no shorter one goes
		return 2 * time.Second
	}
	return time.Second
}

const (
	prefix   = "chaos:" // of the keys of a run
	password = "secret" // of Sentinel's servers
	bucket   = "locks"
)

// open makes the client of a worker. It finds the service as any client does, but every connection to one of its servers
// goes through the worker's proxy.
func (c WorkerConfig) open() (store driver.Driver, hangUp func(), err error) {
	switch strings.TrimSuffix(c.Service, "3") {
	case Postgres, MySQL, SQLite:
		return c.openSQL()
	case Etcd:
		eager := grpc.WithConnectParams(grpc.ConnectParams{ // gRPC's default would spend most of a run waiting
			Backoff: backoff.Config{BaseDelay: 20 * time.Millisecond, Multiplier: 1.5, MaxDelay: 200 * time.Millisecond}, MinConnectTimeout: time.Second,
		})
		client, err := clientv3.New(clientv3.Config{
			Endpoints: c.via(), Logger: zap.NewNop(), DialTimeout: time.Minute, DialOptions: []grpc.DialOption{eager},
			DialKeepAliveTime: time.Second, DialKeepAliveTimeout: time.Second,
		})
		if err != nil {
			return nil, nil, err
		}
		return etcdlock.New(client), func() { _ = client.Close() }, nil
	case NATS:
		conn, js, err := dialNATS(c.via())
		if err != nil {
			return nil, nil, err
		}
		return natslock.New(js, bucket), conn.Close, nil
	case ZooKeeper:
		session := new(zklock.Session)
		conn, _, err := zk.Connect(c.via(), lifeIn(c.Service), zk.WithDialer(session.Dial), zk.WithLogInfo(false), zk.WithLogger(quiet{}))
		if err != nil {
			return nil, nil, err
		}
		for conn.State() != zk.StateHasSession {
			time.Sleep(5 * time.Millisecond)
		}
		return zklock.New(conn, session), conn.Close, nil
	default:
		store, hangUp = c.openRedis()
		return store, hangUp, nil
	}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func dialNATS(addrs []string) (*nats.Conn, jetstream.JetStream, error) {
	conn, err := nats.Connect("nats://"+strings.Join(addrs, ",nats://"), nats.DontRandomize(), nats.RetryOnFailedConnect(true),
		nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(0, 0),
		nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}))
	if err != nil {
		return nil, nil, err
	}
	js, err := jetstream.New(conn)
	return conn, js, err
}

// via are the addresses by which the worker reaches the servers.
func (c WorkerConfig) via() []string {
	all := slices.Clone(c.Servers)
	for i, addr := range all {
		all[i] = cmp.Or(c.Links[addr], addr)
	}
	return all
}

// database says how a service's database is opened at an address.
func database(service, addr string) (dialect sqllock.Dialect, driverName, source string) {
	switch service {
	case Postgres:
		return sqllock.Postgres, "pgx", "postgres://postgres@" + addr + "/postgres?sslmode=disable"
	case MySQL:
		return sqllock.MySQL, "mysql", "root@tcp(" + addr + ")/test"
	default:
		return sqllock.SQLite, "sqlite", "file:" + addr + "?_pragma=busy_timeout(20000)&_pragma=synchronous(OFF)&_pragma=journal_mode(WAL)"
	}
}

func (c WorkerConfig) openSQL() (store driver.Driver, hangUp func(), err error) {
	dialect, driverName, source := database(c.Service, c.via()[0])
	db, err := sql.Open(driverName, source)
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(32)
	db.SetMaxIdleConns(32)
	var opts []sqllock.Option
	if dialect == sqllock.SQLite {
		db.SetMaxOpenConns(8) // one writes at a time, and each new one costs as much as ten statements
	}
	if dialect == sqllock.Postgres {
		opts = append(opts, sqllock.WithListen(pgxlisten.Connect(source)))
	}
	return sqllock.New(db, dialect, opts...), func() { _ = db.Close() }, nil
}

func (c WorkerConfig) openRedis() (store driver.Driver, hangUp func()) {
	var all []redis.UniversalClient
	connect := func(addrs ...string) redis.UniversalClient {
		o := &redis.UniversalOptions{
			Addrs: addrs, ClientName: c.Life, PoolSize: 16, ContextTimeoutEnabled: true, Dialer: c.dial, IsClusterMode: c.Service == Cluster,
			MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
		}
		if c.Service == Replicas {
			o.MasterName, o.SentinelPassword, o.Password = servers.MasterName, password, password
		}
		all = append(all, redis.NewUniversalClient(o))
		return all[len(all)-1]
	}
	opts := []redislock.Option{redislock.WithPrefix(prefix)}
	switch c.Service {
	case Redlock:
		var nodes []driver.Driver
		for _, addr := range c.Servers {
			nodes = append(nodes, redislock.New(connect(addr), opts...))
		}
		store = redlock.New(nodes, redlock.WithFence())
	case Replicas:
		store = redislock.New(connect(c.Servers...), append(opts, redislock.WithReplicas(1, lifeIn(c.Service)/5))...)
	default:
		store = redislock.New(connect(c.Servers...), opts...)
	}
	return store, func() {
		for _, rdb := range all {
			_ = rdb.Close()
		}
	}
}

func (c WorkerConfig) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, cmp.Or(c.Links[addr], addr))
}
