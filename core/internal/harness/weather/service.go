//go:build linux

package weather

import (
	"cmp"
	"context"
	"net"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// The services that a run can have.
const (
	One      = "one"      // a redis-server
	Plain    = "plain"    // one without scripts: WATCH, MULTI and EXEC
	Redlock  = "redlock"  // five of them
	Cluster  = "cluster"  // three masters and their replicas
	Sentinel = "sentinel" // a master, a replica and those who watch over them
	Replicas = "replicas" // the same; a grant counts once the replica has it
)

// password is that of Sentinel's servers, and of the user mute; master is what Sentinel calls them.
const (
	password = "secret"
	master   = "main"
	mute     = "mute"
)

// mayNotSpeak has a server know a user who may publish and subscribe nothing.
var mayNotSpeak = []string{"--user", mute, "on", ">" + password, "~*", "+@all", "resetchannels"}

// user is who a worker logs in as.
func (c WorkerConfig) user() (name, pass string) {
	switch {
	case c.Mute:
		return mute, password
	case c.Service == Sentinel || c.Service == Replicas:
		return "", password
	default:
		return "", ""
	}
}

// open makes the clients of a worker. They find the service as any client does, but every
// connection to one of its servers goes through the worker's proxy.
func (c WorkerConfig) open() (store driver.Driver, hangUp func()) {
	quiet := &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	const pool = 16
	user, pass := c.user()
	var rdb redis.UniversalClient
	switch c.Service {
	case Cluster:
		rdb = redis.NewClusterClient(&redis.ClusterOptions{
			Addrs: c.Servers, ClientName: c.Life, PoolSize: pool, ContextTimeoutEnabled: true, Dialer: c.dial,
			Username: user, Password: pass,
			MaintNotificationsConfig: quiet,
		})
	case Sentinel, Replicas:
		rdb = redis.NewFailoverClient(&redis.FailoverOptions{
			MasterName: master, SentinelAddrs: c.Servers, SentinelPassword: password, Username: user, Password: pass,
			ClientName: c.Life, PoolSize: pool, ContextTimeoutEnabled: true, Dialer: c.dial,
		})
	default:
		return c.openEach(func(addr string) redis.UniversalClient {
			return redis.NewClient(&redis.Options{
				Addr: addr, ClientName: c.Life, PoolSize: pool, ContextTimeoutEnabled: true, Dialer: c.dial,
				Username: user, Password: pass,
				MaintNotificationsConfig: quiet,
			})
		})
	}
	opts := []redislock.Option{redislock.WithPrefix(Prefix)}
	if c.Service == Replicas {
		opts = append(opts, redislock.WithReplicas(1, TTL/5))
	}
	return redislock.New(rdb, opts...), func() { _ = rdb.Close() }
}

// openEach has a client for each server. If there are several, a quorum of them decides.
func (c WorkerConfig) openEach(client func(addr string) redis.UniversalClient) (store driver.Driver, hangUp func()) {
	prefix := redislock.WithPrefix(Prefix)
	var nodes []driver.Driver
	var clients []redis.UniversalClient
	for _, addr := range c.Servers {
		rdb := client(addr)
		clients = append(clients, rdb)
		if c.Service == Plain {
			nodes = append(nodes, redislock.NewTx(rdb, prefix))
		} else {
			nodes = append(nodes, redislock.New(rdb, prefix))
		}
	}
	hangUp = func() {
		for _, rdb := range clients {
			_ = rdb.Close()
		}
	}
	if len(nodes) == 1 {
		return nodes[0], hangUp
	}
	return redlock.New(nodes, redlock.WithFence()), hangUp
}

func (c WorkerConfig) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	return new(net.Dialer).DialContext(ctx, network, cmp.Or(c.Links[addr], addr))
}
