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
		silent  = "it did not answer in time"
		refused = "it refused the command, or no connection to it could be had"
		broken  = "the connection broke, or the answer was an error or made no sense"
	)
	for what, c := range map[string]struct {
		client func(o *redis.Options)
		befall func(t *testing.T, w *world, rdb *redis.Client)
		says   string
	}{
		"frozen":        {nil, func(_ *testing.T, w *world, _ *redis.Client) { w.server.Pause() }, silent},
		"frozen, hasty": {hasty, func(_ *testing.T, w *world, _ *redis.Client) { w.server.Pause() }, silent},
		"a black hole":  {nil, func(_ *testing.T, w *world, _ *redis.Client) { w.proxy.BlackHole(true) }, silent},
		"another port":  {once, func(_ *testing.T, w *world, _ *redis.Client) { w.proxy.Refuse(true); w.proxy.Reset() }, refused},
		"no password": {nil, func(t *testing.T, w *world, _ *redis.Client) {
			w.do(t, "config", "set", "requirepass", "x")
			w.proxy.Reset()
		}, refused},
		"no permission":  {nil, func(t *testing.T, w *world, _ *redis.Client) { w.do(t, "acl", "setuser", "default", "-@all") }, refused},
		"loading":        {nil, func(t *testing.T, w *world, _ *redis.Client) { w.do(t, "replicaof", "127.0.0.1", "1") }, refused},
		"broken replies": {nil, cutReplies, broken},
		"a full pool":    {small, starve, refused},
		"killed":         {once, func(_ *testing.T, w *world, _ *redis.Client) { w.server.Kill() }, refused},
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
