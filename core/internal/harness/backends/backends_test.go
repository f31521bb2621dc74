package backends

import (
	"context"
	"database/sql"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/bradfitz/gomemcache/memcache"
	_ "github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"
	_ "github.com/jackc/pgx/v5/stdlib"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	_ "modernc.org/sqlite"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/etcdlock"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/memcachedlock"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/natslock"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/core/redlock"
	"github.com/holdfast-go/holdfast/core/sqllock"
	"github.com/holdfast-go/holdfast/core/sqllock/pgxlisten"
	"github.com/holdfast-go/holdfast/core/zklock"
)

// backend is a lock service with servers at addrs, none where there is no server.
type backend struct {
	name  string
	addrs []string
	// open returns one more process's store, which reaches the servers at via instead.
	open func(t *testing.T, via []string) driver.Driver
}

// all starts every backend.
func all(t *testing.T) []backend {
	t.Helper()
	return []backend{
		memory(), onRedis(t), inCluster(t), overFive(t),
		onPostgres(t), onMariaDB(t), onSQLite(t), onZooKeeper(t), onEtcd(t), onNATS(t), onMemcached(t),
	}
}

func memory() backend {
	store := memlock.New()
	return backend{"memory", nil, func(*testing.T, []string) driver.Driver { return store }}
}

func onRedis(t *testing.T) backend {
	t.Helper()
	return backend{"Redis", []string{servers.Redis(t).Addr()}, func(t *testing.T, via []string) driver.Driver {
		t.Helper()
		return redislock.New(dial(t, via[0]))
	}}
}

func inCluster(t *testing.T) backend {
	t.Helper()
	addrs := servers.Cluster(t).Addrs()
	return backend{"Redis Cluster", addrs, func(t *testing.T, via []string) driver.Driver {
		t.Helper()
		instead := make(map[string]string, len(addrs))
		for i, addr := range addrs {
			instead[addr] = via[i]
		}
		rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, MaintNotificationsConfig: still(), Dialer: dialer(instead)})
		t.Cleanup(func() { _ = rdb.Close() })
		ok(t, rdb.ForEachMaster(t.Context(), func(ctx context.Context, n *redis.Client) error { return n.Ping(ctx).Err() }))
		return redislock.New(rdb)
	}}
}

func overFive(t *testing.T) backend {
	t.Helper()
	addrs := make([]string, 5)
	for i := range addrs {
		addrs[i] = servers.Redis(t).Addr()
	}
	return backend{"redlock, 5 × Redis", addrs, func(t *testing.T, via []string) driver.Driver {
		t.Helper()
		nodes := make([]driver.Driver, len(via))
		for i, addr := range via {
			nodes[i] = redislock.New(dial(t, addr))
		}
		return redlock.New(nodes)
	}}
}

func onPostgres(t *testing.T) backend {
	t.Helper()
	const source = "postgres://postgres@ADDR/postgres?sslmode=disable"
	return inSQL(t, "PostgreSQL", sqllock.Postgres, "pgx", servers.Postgres(t).Addr(), source, func(addr string) sqllock.Option {
		return sqllock.WithListen(pgxlisten.Connect(strings.Replace(source, "ADDR", addr, 1)))
	})
}

func onMariaDB(t *testing.T) backend {
	t.Helper()
	return inSQL(t, "MariaDB", sqllock.MySQL, "mysql", servers.MariaDB(t).Addr(), "root@tcp(ADDR)/test")
}

func onSQLite(t *testing.T) backend {
	t.Helper()
	file := filepath.Join(t.TempDir(), "test.db")
	b := inSQL(t, "SQLite", sqllock.SQLite, "sqlite", "", "file:"+file+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)")
	b.addrs = nil
	return b
}

func inSQL(t *testing.T, name string, dialect sqllock.Dialect, driverName, addr, source string, opts ...func(addr string) sqllock.Option) backend {
	t.Helper()
	open := func(t *testing.T, via []string) *sql.DB {
		t.Helper()
		at := addr
		if len(via) > 0 {
			at = via[0]
		}
		db, err := sql.Open(driverName, strings.Replace(source, "ADDR", at, 1))
		ok(t, err)
		db.SetMaxIdleConns(10)
		t.Cleanup(func() { _ = db.Close() })
		return db
	}
	schema, err := sqllock.Schema(dialect)
	ok(t, err)
	_, err = open(t, nil).ExecContext(t.Context(), schema)
	ok(t, err)
	return backend{name, []string{addr}, func(t *testing.T, via []string) driver.Driver {
		t.Helper()
		var more []sqllock.Option
		for _, o := range opts {
			more = append(more, o(via[0]))
		}
		return sqllock.New(open(t, via), dialect, more...)
	}}
}

func onZooKeeper(t *testing.T) backend {
	t.Helper()
	return backend{"ZooKeeper", []string{servers.ZooKeeper(t).Addr()}, func(t *testing.T, via []string) driver.Driver {
		t.Helper()
		session := new(zklock.Session)
		conn, _, err := zk.Connect(via, 40*time.Second, zk.WithDialer(session.Dial), zk.WithLogInfo(false), zk.WithLogger(quiet{}))
		ok(t, err)
		t.Cleanup(conn.Close)
		for conn.State() != zk.StateHasSession {
			time.Sleep(5 * time.Millisecond)
		}
		return zklock.New(conn, session)
	}}
}

type quiet struct{}

func (quiet) Printf(string, ...any) {}

func onEtcd(t *testing.T) backend {
	t.Helper()
	return backend{"etcd", []string{servers.Etcd(t).Addr()}, func(t *testing.T, via []string) driver.Driver {
		t.Helper()
		client, err := clientv3.New(clientv3.Config{Endpoints: via, Logger: zap.NewNop(), DialTimeout: time.Minute})
		ok(t, err)
		t.Cleanup(func() { _ = client.Close() })
		return etcdlock.New(client)
	}}
}

func onNATS(t *testing.T) backend {
	t.Helper()
	addr := servers.NATS(t).Addr()
	open := func(t *testing.T, addr string) jetstream.JetStream {
		t.Helper()
		conn, err := nats.Connect("nats://" + addr)
		ok(t, err)
		t.Cleanup(conn.Close)
		js, err := jetstream.New(conn)
		ok(t, err)
		return js
	}
	_, err := open(t, addr).CreateKeyValue(t.Context(), natslock.Bucket("locks", 1))
	ok(t, err)
	return backend{"NATS", []string{addr}, func(t *testing.T, via []string) driver.Driver {
		t.Helper()
		return natslock.New(open(t, via[0]), "locks")
	}}
}

func onMemcached(t *testing.T) backend {
	t.Helper()
	return backend{"memcached", []string{servers.Memcached(t).Addr()}, func(t *testing.T, via []string) driver.Driver {
		t.Helper()
		mc := memcache.New(via...)
		mc.MaxIdleConns = 16
		t.Cleanup(func() { _ = mc.Close() })
		return memcachedlock.New(mc)
	}}
}

func dial(t *testing.T, addr string) *redis.Client {
	t.Helper()
	rdb := redis.NewClient(&redis.Options{Addr: addr, MaintNotificationsConfig: still()})
	t.Cleanup(func() { _ = rdb.Close() })
	return rdb
}

func still() *maintnotifications.Config {
	return &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
}

var ok = backendtest.OK
