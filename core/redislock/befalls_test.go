package redislock_test

import (
	"bytes"
	"context"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
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

// grave is what something means for those who ask for locks.
type grave int

const (
	silent grave = iota // nobody answers: an outage
	down                // it says that it cannot serve: an outage
	passes              // it refuses until somebody mends that
	stays               // to ask again is in vain
	local               // it refuses this name
)

// What an operator reads must be true, or it sends him the wrong way. None of this says who has a name.
func TestWhatBefallsTheServerIsUnavailableAndTheLogSaysIt(t *testing.T) {
	t.Parallel()
	const (
		noAnswer  = "it did not answer in time"
		noDial    = "no connection to it could be had"
		allRights = "; docs/backends/redis.md has all permissions for locking"
		wrongType = "WRONGTYPE: a key of the lock has another type, so another program uses the same prefix"
		wrongPass = "WRONGPASS: the server does not know this user and password, so check Username and Password of the client"
	)
	does := func(args ...any) func(*testing.T, *world, *redis.Client) {
		return func(t *testing.T, w *world, _ *redis.Client) { t.Helper(); w.do(t, args...); w.proxy.Reset() }
	}
	for what, c := range map[string]struct {
		says   string
		is     grave
		client func(o *redis.Options)
		befall func(t *testing.T, w *world, rdb *redis.Client)
	}{
		"frozen":       {noAnswer, silent, nil, func(_ *testing.T, w *world, _ *redis.Client) { w.server.Pause() }},
		"another port": {noDial, silent, once, func(_ *testing.T, w *world, _ *redis.Client) { w.proxy.Refuse(true); w.proxy.Reset() }},
		"a full pool":  {"all connections of the client are in use: see PoolSize, or give locks a client of their own", silent, small, func(t *testing.T, _ *world, rdb *redis.Client) { t.Helper(); take(t, rdb) }},
		"a replica": {
			"READONLY: the server is a replica; send commands to the master, which redis.NewFailoverClient finds", down, nil, does("replicaof", "127.0.0.1", "1"),
		},
		"full memory": {
			"OOM: the server's memory is full (maxmemory); leases are still renewed and released, new ones need memory", passes, nil, does("config", "set", "maxmemory", "1"),
		},
		"the password": {wrongPass, stays, func(o *redis.Options) { o.Username, o.Password = "locks", "first" }, func(t *testing.T, w *world, _ *redis.Client) {
			t.Helper()
			w.do(t, "acl", "setuser", "locks", "resetpass", ">next")
			ok(t, w.direct.ClientKillByFilter(t.Context(), "user", "locks").Err())
		}},
		"no permission":            {"NOPERM: the user may not run evalsha: ACL SETUSER <user> +evalsha" + allRights, stays, nil, does("acl", "setuser", "default", "-@all")},
		"a command of the scripts": {"NOPERM: the user may not run set: ACL SETUSER <user> +set" + allRights, stays, nil, does("acl", "setuser", "default", "-set")},
		"other keys": {
			"NOPERM: the user may not access the keys of locks: ACL SETUSER <user> ~holdfast:* ~{holdfast:*, or with the prefix of WithPrefix" + allRights,
			stays, nil, does("acl", "setuser", "default", "resetkeys", "~x"),
		},
		"another type": {wrongType, local, nil, does("lpush", "holdfast:other", "x")},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, "--user", "locks", "on", ">first", "~*", "&*", "+@all")
			o := &redis.Options{Addr: w.proxy.Addr()}
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
			if c.is == down || c.is == passes {
				if err := locks.Ready(t.Context()); err == nil || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), o.Addr) {
					t.Errorf("Ready: %v", err)
				}
			}
			if patient, err := locks.With(core.WithTTL(time.Hour)); c.is == stays { // it would go on for as long
				ok(t, err)
				toldThat(t, patient, c.says)
			}
			y, err := localOnly(t, rdb).TryAcquire(t.Context(), "other")
			if outage := c.is == silent || c.is == down; outage != (err == nil) || outage && !y.Degraded() {
				t.Errorf("work goes on locally: %v", err)
			}
			if err == nil {
				ok(t, y.Release(t.Context()))
			}
			ctx, cancel := context.WithTimeout(t.Context(), ttl)
			defer cancel()
			_ = locks.Close(ctx) // all has been logged then
			if got := j.unavailable(); len(got) != 1 || got[0] != c.says {
				t.Errorf("logged %q, not %q", got, c.says)
			}
		})
	}
}

func once(o *redis.Options)  { o.DialerRetries = 1 } // or it dials for as long as a call lasts
func small(o *redis.Options) { o.PoolSize, o.PoolTimeout = 1, ttl/20 }

// localOnly is a Locker whose work goes on without Redis.
func localOnly(t *testing.T, rdb *redis.Client) *core.Locker {
	t.Helper()
	local, err := backendtest.Locker(t, fallback.New(redislock.New(rdb)), ttl).With(core.OnUnavailable(core.LocalOnly))
	ok(t, err)
	return local
}
