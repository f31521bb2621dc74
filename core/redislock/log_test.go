package redislock_test

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// journal is what a Locker logs.
type journal struct {
	mu   sync.Mutex // protects text
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

// unavailable is what the lines about the lock service say of why, each once.
func (j *journal) unavailable() (because []string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, line := range regexp.MustCompile(`(?:unavailable,|not confirmed).* because="([^"]+)"`).FindAllSubmatch(j.text.Bytes(), -1) {
		because = append(because, string(line[1]))
	}
	slices.Sort(because)
	return slices.Compact(because)
}

// What an operator reads must be true, or it sends him the wrong way.
func TestTheLogSaysWhatBefellTheServer(t *testing.T) {
	t.Parallel()
	const (
		silent = "it did not answer in time"
		noDial = "no connection to it could be had"
		broken = "the connection was closed in place of an answer: by a server that ends, by a proxy that has no server, " +
			"or by one that does not know the command, such as twemproxy, which cannot be used"
	)
	for what, c := range map[string]struct {
		client func(o *redis.Options)
		befall func(t *testing.T, w *world, rdb *redis.Client)
		says   string
	}{
		"frozen":        {nil, func(_ *testing.T, w *world, _ *redis.Client) { w.server.Pause() }, silent},
		"frozen, hasty": {hasty, func(_ *testing.T, w *world, _ *redis.Client) { w.server.Pause() }, silent},
		"a black hole":  {nil, func(_ *testing.T, w *world, _ *redis.Client) { w.proxy.BlackHole(true) }, silent},
		"another port":  {once, func(_ *testing.T, w *world, _ *redis.Client) { w.proxy.Refuse(true); w.proxy.Reset() }, noDial},
		"no password": {nil, func(t *testing.T, w *world, _ *redis.Client) {
			w.do(t, "config", "set", "requirepass", "x")
			w.proxy.Reset()
		}, "NOAUTH: the server wants a password, so set Username and Password of the client"},
		"no permission": {
			nil, func(t *testing.T, w *world, _ *redis.Client) { w.do(t, "acl", "setuser", "default", "-@all") },
			"NOPERM: the user may not run evalsha: ACL SETUSER <user> +evalsha; docs/backends/redis.md has all permissions for locking",
		},
		"a command of the scripts": {
			nil, func(t *testing.T, w *world, _ *redis.Client) { w.do(t, "acl", "setuser", "default", "-set") },
			"NOPERM: the user may not run set: ACL SETUSER <user> +set; docs/backends/redis.md has all permissions for locking",
		},
		"other keys": {
			nil, func(t *testing.T, w *world, _ *redis.Client) { w.do(t, "acl", "setuser", "default", "resetkeys", "~x") },
			"NOPERM: the user may not access the keys of locks: ACL SETUSER <user> ~holdfast:* ~{holdfast:*, or with the prefix of WithPrefix; " +
				"docs/backends/redis.md has all permissions for locking",
		},
		"a replica": {
			nil, func(t *testing.T, w *world, _ *redis.Client) { w.do(t, "replicaof", "127.0.0.1", "1") },
			"READONLY: the server is a replica; send commands to the master, which redis.NewFailoverClient finds",
		},
		"full memory": {
			nil, func(t *testing.T, w *world, _ *redis.Client) { w.do(t, "config", "set", "maxmemory", "1") },
			"OOM: the server's memory is full (maxmemory); leases are still renewed and released, new ones need memory",
		},
		"too few replicas": {
			nil, func(t *testing.T, w *world, _ *redis.Client) { w.do(t, "config", "set", "min-replicas-to-write", "1") },
			"NOREPLICAS: the server refuses writes because it has too few replicas (min-replicas-to-write)",
		},
		"broken replies": {nil, cutReplies, broken},
		"a full pool":    {small, starve, "all connections of the client are in use: see PoolSize, or give locks a client of their own"},
		"killed":         {once, func(_ *testing.T, w *world, _ *redis.Client) { w.server.Kill() }, noDial},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t)
			o := &redis.Options{Addr: w.proxy.Addr()}
			if what == "killed" { // behind a proxy it is the connection that breaks
				o.Addr = w.server.Addr()
			}
			if c.client != nil {
				c.client(o)
			}
			rdb := dial(t, o)
			j := &journal{}
			locks, err := core.New(redislock.New(rdb), core.WithTTL(ttl), core.WithLogger(slog.New(slog.NewTextHandler(j, nil))))
			ok(t, err)
			x := acquire(t, locks, "name")
			c.befall(t, w, rdb)
			_, err = locks.TryAcquire(context.Background(), "other") // on this goroutine
			is(t, err, core.ErrUnavailable)
			_ = x.Release(context.Background())
			eventually(t, "a line", func() bool { return len(j.unavailable()) > 0 })
			ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
			defer cancel()
			_ = locks.Close(ctx) // all has been logged then
			if got := j.unavailable(); len(got) != 1 || got[0] != c.says {
				t.Errorf("logged %q, not %q", got, c.says)
			}
		})
	}
}

func hasty(o *redis.Options) { o.ReadTimeout = ttl / 20 }
func once(o *redis.Options)  { o.DialerRetries = 1 } // or it dials for as long as a call lasts
func small(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, ttl/20 }

func cutReplies(_ *testing.T, w *world, _ *redis.Client) {
	for n := range 10_000 {
		w.proxy.CutReply(n + 1)
	}
}

// starve takes the client's only connection.
func starve(t *testing.T, _ *world, rdb *redis.Client) {
	t.Helper()
	conn := rdb.Conn()
	t.Cleanup(func() { _ = conn.Close() })
	ok(t, conn.Ping(t.Context()).Err())
}
