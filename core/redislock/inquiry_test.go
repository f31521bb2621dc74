package redislock_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// What servers say of themselves, shortened.
const (
	infoRedis   = "# Server\r\nredis_version:7.0.15\r\n\r\n# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:noeviction\r\n\r\n# Replication\r\nrole:master\r\n\r\n# Modules\r\nmodule:name=ReJSON,ver=20606,api=1\r\n"
	infoNoLimit = "# Memory\r\nmaxmemory:0\r\nmaxmemory_policy:allkeys-lru\r\n\r\n# Replication\r\nrole:master\r\n"
	infoReplica = "# Replication\r\nrole:slave\r\nmaster_host:10.0.0.1\r\nslave_read_only:1\r\n"
	infoDragon  = "# Server\r\nredis_version:7.4.0\r\ndragonfly_version:df-v1.40.1\r\n\r\n# Memory\r\nmaxmemory:1073741824\r\ncache_mode:store\r\nmaxmemory_policy:noeviction\r\n\r\n# Replication\r\nrole:master\r\n"
	infoEvicts  = "# Memory\r\nmaxmemory:104857600\r\nmaxmemory_policy:allkeys-lru\r\n"

	noInfo = "-NOPERM User locks has no permissions to run the 'info' command\r\n"
)

// asking is a server that answers INFO with one text after the other, and grants everything else.
func asking(t *testing.T, infos ...string) *scripted {
	t.Helper()
	asked := 0
	var mu sync.Mutex // protects asked
	return serve(t, lenient(func(words []string) string {
		if words[0] != "info" {
			return bulk("1795000000000000")
		}
		mu.Lock()
		defer mu.Unlock()
		text := infos[min(asked, len(infos)-1)]
		if asked++; text == silence || strings.HasPrefix(text, "-") {
			return text
		}
		return bulk(text)
	}))
}

func TestAServerThatSaysThatItIsUnfitIsRefusedAtTheFirstClaim(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct{ info, says string }{
		"an active replica":  {"# Replication\r\nrole:active-replica\r\nmaster_host:10.0.0.1\r\nslave_read_only:0\r\n", "active-replica"},
		"active-active":      {"# Modules\r\nmodule:name=crdt,ver=60402,api=1\r\n\r\n# Replication\r\nrole:master\r\n", "Active-Active"},
		"a writable replica": {"# Replication\r\nrole:slave\r\nmaster_host:10.0.0.1\r\nslave_read_only:0\r\n", "its master knows nothing"},
		"all keys evicted":   {infoEvicts, "maxmemory-policy to noeviction"},
		"locks evicted":      {"# Memory\r\nmaxmemory:104857600\r\nmaxmemory_policy:volatile-ttl\r\n", "maxmemory-policy to noeviction"},
		"Dragonfly, a cache": {"# Server\r\ndragonfly_version:df-v1.40.1\r\n\r\n# Memory\r\nmaxmemory:104857600\r\ncache_mode:cache\r\n", "maxmemory-policy to noeviction"},
		"Garnet":             {"# Server\r\ngarnet_version:1.0.84\r\nredis_version:7.4.3\r\n", "--lua-transaction-mode"},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := asking(t, c.info)
			for kind, store := range s.stores(t) {
				err := acquireWith(t.Context(), store, theClaim())
				if !errors.Is(err, driver.ErrRefused) || !errors.Is(err, driver.ErrNotSent) || !strings.Contains(driver.Reason(err), c.says) || !strings.Contains(driver.Reason(err), "WithoutServerCheck") {
					t.Errorf("%s: %v, since %q", kind, err, driver.Reason(err))
				}
			}
			if n := len(s.requests("evalsha", "eval")); n > 0 {
				t.Errorf("%d claims were sent", n)
			}
			ok(t, acquireWith(t.Context(), redislock.New(dial(t, hasty(s.addr)), redislock.WithoutServerCheck()), theClaim()))
			locks, err := locker(t, dial(t, hasty(s.addr))).With(core.WithTTL(time.Hour)) // it does not ask for an hour
			ok(t, err)
			toldThat(t, locks, c.says)
		})
	}
}

// A fit server is asked once, and one that refuses INFO, too. One that does not answer, as when a service starts and all of
// it is busy, or a proxy, or another client's script, is asked again, but not for ever.
func TestAServerIsAskedWhatItIsUntilThatIsKnown(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		infos  []string
		asked  int
		claims int // that are granted: then one is refused, unless it is five
	}{
		"Redis": {[]string{infoRedis}, 1, 5}, "without a limit": {[]string{infoNoLimit}, 1, 5}, "a replica, which says so itself": {[]string{infoReplica}, 1, 5},
		"Dragonfly": {[]string{infoDragon}, 1, 5}, "no text": {[]string{"# nothing\r\n"}, 1, 5},
		"no permission": {[]string{noInfo}, 1, 5}, "no such command": {[]string{"-ERR unknown command 'info'\r\n"}, 1, 5},
		"never an answer":                {[]string{silence}, 3, 5},
		"no answer, then no permission":  {[]string{silence, noInfo}, 2, 5},
		"no answer at first":             {[]string{silence, infoEvicts}, 2, 1},
		"a proxy's at first":             {[]string{"-ERR upstream failure\r\n", infoEvicts}, 2, 1},
		"another client's script's, too": {[]string{"-BUSY Redis is busy running a script\r\n", infoEvicts}, 2, 1},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			s := asking(t, c.infos...)
			o, up := hasty(s.addr), atomic.Bool{}
			o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
				if !up.Load() {
					return nowhere(ctx, network, addr)
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			}
			store := redislock.New(dial(t, o))
			for range 5 { // a claim that reaches no server says nothing about INFO
				if err := acquireWith(t.Context(), store, theClaim()); err == nil {
					t.Fatal("granted by nobody")
				}
			}
			up.Store(true)
			for range c.claims {
				ok(t, acquireWith(t.Context(), store, theClaim()))
			}
			if c.claims < 5 {
				is(t, acquireWith(t.Context(), store, theClaim()), driver.ErrRefused)
			}
			if n := len(s.requests("info")); n != c.asked {
				t.Errorf("asked %d times", n)
			}
		})
	}
}

func TestAServerThatWasMendedIsUsedWithoutARestart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, "--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru")
	locks, err := w.locks.With(core.WithTTL(time.Minute)) // a busy machine answers in time
	ok(t, err)
	toldThat(t, locks, "evicts")
	w.do(t, "config", "set", "maxmemory-policy", "noeviction")
	ok(t, locks.Ready(t.Context()))
	w.do(t, "replicaof", "127.0.0.1", "1")
	w.do(t, "config", "set", "replica-read-only", "no")
	toldThat(t, w.other, "replica")
}
