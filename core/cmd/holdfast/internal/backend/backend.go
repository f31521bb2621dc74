// Package backend opens the lock service that a URL names:
//
//	redis://[user:password@]host:port/database            rediss:// for TLS, unix:// for a socket
//	redis+sentinel://[…@]host:port,host:port/master/database   of the Sentinels; rediss+sentinel:// for TLS
//	redis+cluster://[…@]host:port,host:port                   some nodes; rediss+cluster:// for TLS
//	redlock://[…@]host:port,host:port,host:port/database      all nodes, at least 3; redlocks:// for TLS
//	postgres://user:password@host:port/database           as libpq has it
//	mysql://user:password@host:port/database              MariaDB too
//	sqlite:path                                           a file of this machine
//	etcd://[user:password@]host:port,host:port            etcds:// for TLS
//	zk://[user:password@]host:port,host:port/root         with digest authentication
//	nats://[user:password@]host:port,host:port/bucket     nats+tls:// for TLS
//	memcached://host:port,host:port                       the same servers in the same order everywhere
//
// Parameters behind a question mark:
//
//	prefix=text     what the keys begin with; all but SQL, NATS and ZooKeeper, whose path is the root
//	table=name      SQL
//	replicas=n      Redis: how many replicas have to know of a grant
//	fence=on        redlock: fences, for one more round trip
//	sentinel_username, sentinel_password   where the Sentinels ask for one; the URL has that of the servers
//	cacert, cert, key   etcds, nats+tls: files
//	creds=file, domain=name   NATS
//
// All others are those of the client library: go-redis, pgx, go-sql-driver/mysql, modernc.org/sqlite.
package backend

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Options are what a URL does not say.
type Options struct {
	// Password is used if the URL has none.
	Password string
	// Prefix replaces that of the URL, if it is not nil.
	Prefix *string
	// TTL is the longest lease that will be asked for. Sessions of ZooKeeper depend on it.
	TTL time.Duration
	// Create makes a SQLite file and its table, where they are missing.
	Create bool
}

// Backend is an open lock service.
type Backend struct {
	Driver driver.Driver
	// Place says where it is, without a password: for people.
	Place string
	// Prefix is what the keys begin with: a root or a table for backends that have no keys.
	Prefix string
	// Prefixes looks for the prefixes under which locks were taken. It is nil if the service cannot be
	// asked. It stops after a bounded number of keys.
	Prefixes func(context.Context) ([]string, error)
	// Schema is the SQL that makes the table, "" for other services.
	Schema string

	db    *sql.DB // nil for other services
	close []func()
}

// Close closes the clients. Close the Locker first.
func (b *Backend) Close() {
	for _, f := range slices.Backward(b.close) {
		f()
	}
}

const (
	dialTimeout = 3 * time.Second
	defaultTTL  = 10 * time.Second
)

// Open makes the clients for a URL. It connects only where the client library does so by itself, or to find
// out whether the service answers at all: for ZooKeeper, where ctx limits that, for NATS, and for etcd with a user.
// No error has the password, or anything that could be a part of it.
func Open(ctx context.Context, rawURL string, o Options) (*Backend, error) {
	o.TTL = cmp.Or(o.TTL, defaultTTL)
	u, err := parse(rawURL)
	if err != nil {
		return nil, err
	}
	if o.Prefix != nil {
		u.query.Set("prefix", *o.Prefix)
	}
	kind, ok := kinds[u.scheme]
	if !ok {
		return nil, fmt.Errorf("URL: unknown scheme %q; these are known: %s", u.scheme, strings.Join(Schemes(), ", "))
	}
	b, err := kind(ctx, u, o)
	if err != nil {
		return nil, fmt.Errorf("URL %s:…: %w", u.scheme, err) // not more of it: see errURL
	}
	b.Place = u.String()
	return b, nil
}

// opener makes the clients of one kind of service.
type opener func(context.Context, *address, Options) (*Backend, error)

var kinds = map[string]opener{
	"redis": openRedis, "rediss": openRedis, "unix": openRedis,
	"redis+sentinel": openSentinel, "rediss+sentinel": openSentinel,
	"redis+cluster": openCluster, "rediss+cluster": openCluster,
	"redlock": openRedlock, "redlocks": openRedlock,
	"postgres": openPostgres, "postgresql": openPostgres,
	"mysql": openMySQL, "mariadb": openMySQL,
	"sqlite": openSQLite,
	"etcd":   openEtcd, "etcds": openEtcd,
	"zk":   openZooKeeper,
	"nats": openNATS, "nats+tls": openNATS,
	"memcached": openMemcached,
}

// Schemes are those of the URLs that Open knows.
func Schemes() []string {
	var all []string
	for scheme := range kinds {
		all = append(all, scheme)
	}
	slices.Sort(all)
	return all
}
