package backend

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/holdfast-go/holdfast/core/redislock"
)

// Quiet keeps go-redis from writing to standard error: what goes wrong comes back as an error. It is for the
// whole process; call it before there are clients.
func Quiet() { logging.Disable() }

// quiet turns off what a command has no use for.
var quiet = maintnotifications.Config{Mode: maintnotifications.ModeDisabled}

// url is the address in the form that the parsers of go-redis take, which know redis:// and rediss:// only.
// The others of several hosts are parameters there.
func (a *address) url(path string) string {
	u := url.URL{Scheme: "redis", User: a.user, Host: a.hosts[0], Path: path}
	if strings.HasPrefix(a.scheme, "rediss") || a.scheme == "redlocks" {
		u.Scheme = "rediss"
	}
	for _, host := range a.hosts[1:] {
		a.query.Add("addr", host)
	}
	u.RawQuery = a.query.Encode()
	return u.String()
}

// errRedis stands for the errors of the parsers, which may have a password.
var errRedis = errors.New("go-redis does not take the path or a parameter; the path is the number of a database")

func openRedis(_ context.Context, a *address, o Options) (*Backend, error) {
	opts, err := a.storeOptions()
	if err != nil {
		return nil, err
	}
	var text string
	if a.scheme == "unix" {
		text = (&url.URL{Scheme: "unix", User: a.user, Path: a.path, RawQuery: a.query.Encode()}).String()
	} else {
		if hosts, err := a.ports("localhost", "6379"); err != nil {
			return nil, err
		} else if len(hosts) > 1 {
			return nil, errors.New("several hosts; use redis+cluster://, redis+sentinel://, or redlock:// for servers that know nothing of each other")
		}
		text = a.url(a.path)
	}
	rdb, err := redisClient(text, o)
	if err != nil {
		return nil, err
	}
	return redisBackend(rdb, opts), nil
}

// redisClient makes a client for one server, from a URL in the form of go-redis.
func redisClient(text string, o Options) (*redis.Client, error) {
	c, err := redis.ParseURL(text)
	if err != nil {
		return nil, errRedis
	}
	c.Password = cmp.Or(c.Password, o.Password)
	c.DialTimeout, c.DialerRetries = cmp.Or(c.DialTimeout, dialTimeout), cmp.Or(c.DialerRetries, 1)
	c.MaintNotificationsConfig = &quiet
	return redis.NewClient(c), nil
}

func openSentinel(_ context.Context, a *address, o Options) (*Backend, error) {
	opts, err := a.storeOptions()
	if err != nil {
		return nil, err
	}
	if _, err := a.ports("", "26379"); err != nil {
		return nil, err
	}
	master, database, _ := strings.Cut(strings.TrimPrefix(a.path, "/"), "/")
	if master == "" {
		return nil, errors.New("the path has to begin with the name of the master, as in redis+sentinel://host:26379/mymaster")
	}
	// Here user and password are those of the servers; parameters have those of the Sentinels.
	user, password := a.take("sentinel_username"), a.take("sentinel_password")
	a.query.Set("master_name", master)
	c, err := redis.ParseFailoverURL(a.url("/" + database))
	if err != nil {
		return nil, errRedis
	}
	c.SentinelUsername, c.SentinelPassword = user, password
	c.Username, c.Password = a.user.Username(), a.password(o.Password)
	c.DialTimeout, c.DialerRetries = cmp.Or(c.DialTimeout, dialTimeout), cmp.Or(c.DialerRetries, 1)
	return redisBackend(redis.NewFailoverClient(c), opts), nil
}

func openCluster(_ context.Context, a *address, o Options) (*Backend, error) {
	opts, err := a.storeOptions()
	if err != nil {
		return nil, err
	}
	if _, err := a.ports("localhost", "6379"); err != nil {
		return nil, err
	}
	if strings.Trim(a.path, "/") != "" {
		return nil, errors.New("a Cluster has no databases: leave the path out")
	}
	c, err := redis.ParseClusterURL(a.url(""))
	if err != nil {
		return nil, errRedis
	}
	c.Password = cmp.Or(c.Password, o.Password)
	c.DialTimeout, c.ContextTimeoutEnabled = cmp.Or(c.DialTimeout, dialTimeout), true
	c.MaintNotificationsConfig = &quiet
	return redisBackend(redis.NewClusterClient(c), opts), nil
}

// storeOptions are the options of redislock that a URL has.
type storeOptions struct {
	prefix string
	store  []redislock.Option
}

func (a *address) storeOptions() (s storeOptions, err error) {
	s.prefix = "holdfast:"
	if a.query.Has("prefix") {
		s.prefix = a.take("prefix")
	}
	s.store = []redislock.Option{redislock.WithPrefix(s.prefix)}
	if text := a.take("replicas"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			return s, fmt.Errorf("replicas=%q: not a number", text)
		}
		s.store = append(s.store, redislock.WithReplicas(n, time.Second))
	}
	switch text := a.take("servercheck"); text {
	case "", "on":
	case "off":
		s.store = append(s.store, redislock.WithoutServerCheck())
	default:
		return s, fmt.Errorf("servercheck=%q: neither on nor off", text)
	}
	return s, nil
}

func redisBackend(rdb redis.UniversalClient, s storeOptions) *Backend {
	return &Backend{
		Driver: redislock.New(rdb, s.store...), Prefix: s.prefix,
		Prefixes: func(ctx context.Context) ([]string, error) { return redisPrefixes(ctx, rdb) },
		close:    []func(){func() { _ = rdb.Close() }},
	}
}

// mostKeys is how many keys a search for prefixes looks at.
const mostKeys = 100_000

// redisPrefixes finds the counters of fences: each prefix has one, which stays, and whose name has the
// prefix in braces. In a Cluster each slot has one, and there is nothing to find.
func redisPrefixes(ctx context.Context, rdb redis.UniversalClient) (found []string, err error) {
	if _, ok := rdb.(*redis.ClusterClient); ok {
		return nil, nil
	}
	const page = 1000
	for cursor, seen := uint64(0), 0; seen < mostKeys; seen += page {
		var keys []string
		if keys, cursor, err = rdb.Scan(ctx, cursor, "{*}:v1:fence", page).Result(); err != nil {
			return nil, err
		}
		for _, key := range keys {
			prefix := strings.TrimSuffix(strings.TrimPrefix(key, "{"), "}:v1:fence")
			if !slices.Contains(found, prefix) {
				found = append(found, prefix)
			}
		}
		if cursor == 0 {
			break
		}
	}
	slices.Sort(found)
	return found, nil
}
