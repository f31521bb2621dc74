package redislock_test

import (
	"context"
	"crypto/sha1" //nolint:gosec // G505: as the script does
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// list collects what Leases says, sorted by name.
func list(t *testing.T, locks inspect.Inspector, prefix string) []inspect.LeaseInfo {
	t.Helper()
	var infos []inspect.LeaseInfo
	for info, err := range locks.Leases(t.Context(), prefix) {
		ok(t, err)
		infos = append(infos, info)
	}
	slices.SortFunc(infos, func(a, b inspect.LeaseInfo) int { return strings.Compare(a.Name, b.Name) })
	return infos
}

// hold acquires a name until the test ends, and renews it often.
func hold(t *testing.T, locks *core.Locker, name string, opts ...core.Option) *core.Lease {
	t.Helper()
	x := acquire(t, locks, name, append(opts, core.WithTTL(10*time.Second), core.WithRenewEvery(300*time.Millisecond))...)
	t.Cleanup(func() { _ = x.Release(context.Background()) })
	return x
}

// handleOf is what an operator sees of the only holder.
func handleOf(t *testing.T, locks inspect.Inspector, name string) string {
	t.Helper()
	info, err := locks.Inspect(t.Context(), name)
	ok(t, err)
	return info.Handle
}

func TestInspectTellsTheHolderAndTheLineWithoutSecrets(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	process := func() operator {
		return operates(t, dial(t, &redis.Options{Addr: share.Addr}), redislock.WithPrefix(share.Prefix))
	}
	operator := process()
	x := hold(t, process().Locker, "name", core.WithLabel("host-1 ütf"))
	info, err := operator.Inspect(t.Context(), "name")
	ok(t, err)
	if !info.Held || info.Foreign || info.Label != "host-1 ütf" || info.Remaining <= 0 || info.Remaining > 10*time.Second || len(info.Line) > 0 {
		t.Errorf("%+v", info)
	}
	_, err = operator.TryAcquire(t.Context(), "name")
	if held, ok := errors.AsType[*core.HeldError](err); !ok || held.Label != "host-1 ütf" {
		t.Errorf("%v", err)
	}

	var waiting sync.WaitGroup
	ctx, cancel := context.WithCancel(t.Context())
	for n := range 2 {
		other := process()
		waiting.Go(func() { _, _ = other.Acquire(ctx, "name") })
		eventually(t, "it is in line", func() bool {
			info, err = operator.Inspect(t.Context(), "name")
			ok(t, err)
			return len(info.Line) == n+1
		})
	}
	if a, b := info.Line[0], info.Line[1]; !a.Alive || !b.Alive || a.Waited < b.Waited || b.Waited < 0 || a.Waited > time.Minute {
		t.Errorf("%+v", info.Line)
	}
	secrets := []string{rdb.Get(t.Context(), share.Prefix+"name").Val()[:22]}
	secrets = append(secrets, rdb.ZRange(t.Context(), "{"+share.Prefix+"name}:v1:line", 0, -1).Val()...)
	for _, secret := range secrets {
		if len(secret) < 22 || strings.Contains(fmt.Sprintf("%+v", info), secret[:22]) {
			t.Errorf("%q in %+v", secret, info)
		}
	}
	cancel()
	waiting.Wait()
	ok(t, x.Release(t.Context()))
}

func TestInspectTellsWhichOfALineAreDead(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	operator := operates(t, rdb, redislock.WithPrefix(share.Prefix))
	line := "{" + share.Prefix + "name}:v1:line"
	now := time.Now().UnixMilli()
	ok(t, rdb.ZAdd(t.Context(), line, redis.Z{Score: float64(now - 60_000), Member: "dead"}, redis.Z{Score: float64(now), Member: "alive"}, redis.Z{Score: float64(now + 1), Member: "no beat"}).Err())
	ok(t, rdb.HSet(t.Context(), line+":beats", "dead", now-1, "alive", now+9_000).Err())
	info, err := operator.Inspect(t.Context(), "name")
	ok(t, err)
	if info.Held || len(info.Line) != 3 || info.Line[0].Alive || !info.Line[1].Alive || info.Line[2].Alive || info.Line[0].Waited < time.Minute {
		t.Errorf("%+v", info)
	}
	if infos := list(t, operator, ""); len(infos) != 0 {
		t.Errorf("a name that nobody holds is listed: %+v", infos)
	}
}

func TestLeasesAreListedByPrefixAndNothingElseIs(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	locks := operates(t, rdb, redislock.WithPrefix(share.Prefix))
	for _, name := range []string{"order:1", "order:2", "order:10", "report", "od[a-z]er", `back\slash`, "st*r"} {
		hold(t, locks.Locker, name)
	}
	ok(t, acquire(t, locks.Locker, "done", core.WithDedup(time.Minute)).Complete(t.Context())) // leaves a marker
	ok(t, rdb.Set(t.Context(), share.Prefix+"order:foreign", "bm90IGhvbGRmYXN0J3M=", time.Minute).Err())
	ok(t, rdb.Set(t.Context(), share.Prefix+"order:foreign-2", strings.Repeat("t", 40), time.Minute).Err())
	ok(t, rdb.HSet(t.Context(), share.Prefix+"order:hash", "a", "b").Err())
	ok(t, rdb.Set(t.Context(), "other:"+share.Prefix+"order:3", "x", time.Minute).Err())
	for prefix, want := range map[string][]string{
		"":           {`back\slash`, "od[a-z]er", "order:1", "order:10", "order:2", "order:foreign", "order:foreign-2", "order:hash", "report", "st*r"},
		"order:":     {"order:1", "order:10", "order:2", "order:foreign", "order:foreign-2", "order:hash"},
		"order:1":    {"order:1", "order:10"},
		"od[a-z]er":  {"od[a-z]er"},
		"o?":         nil,
		"*":          nil,
		`back\slash`: {`back\slash`},
	} {
		var names []string
		for _, info := range list(t, locks, prefix) {
			names = append(names, info.Name)
			if foreign := strings.HasPrefix(info.Name, "order:foreign") || info.Name == "order:hash"; info.Foreign != foreign || info.Remaining == 0 && info.Name != "order:hash" {
				t.Errorf("%+v", info)
			}
		}
		if !slices.Equal(names, want) {
			t.Errorf("with %q: %q, not %q", prefix, names, want)
		}
	}
}

func TestAListReadsInSmallSteps(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	rdb := dial(t, &redis.Options{Addr: server.Addr()})
	pipe := rdb.Pipeline()
	for i := range 3000 {
		pipe.Set(t.Context(), fmt.Sprintf("holdfast:name-%d", i), strings.Repeat("t", 22)+"\x1flabel", time.Minute)
		pipe.Set(t.Context(), fmt.Sprintf("other:%d", i), "x", time.Minute)
	}
	_, err := pipe.Exec(t.Context())
	ok(t, err)
	ok(t, rdb.ConfigSet(t.Context(), "slowlog-max-len", "100000").Err())
	ok(t, rdb.ConfigSet(t.Context(), "slowlog-log-slower-than", "0").Err())
	if infos := list(t, redislock.New(rdb), ""); len(infos) < 3000 {
		t.Errorf("%d names", len(infos))
	}
	sent, err := rdb.SlowLogGet(t.Context(), -1).Result()
	ok(t, err)
	calls := make(map[string]int)
	for _, cmd := range sent {
		calls[strings.ToLower(cmd.Args[0])]++
		if strings.EqualFold(cmd.Args[0], "scan") && !slices.Equal(cmd.Args[len(cmd.Args)-2:], []string{"count", "100"}) {
			t.Errorf("%q", cmd.Args)
		}
	}
	if calls["scan"] < 30 || calls["scan"] > 200 || calls["keys"] > 0 || calls["smembers"] > 0 {
		t.Errorf("calls %v for 6000 keys", calls)
	}
}

func TestWithoutAPrefixTheKeysBesideTheLocksAreNotListed(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t)
	locks := operates(t, dial(t, &redis.Options{Addr: server.Addr()}), redislock.WithPrefix(""))
	hold(t, locks.Locker, "name")
	ok(t, acquire(t, locks.Locker, "done", core.WithDedup(time.Minute)).Complete(t.Context()))
	if infos := list(t, locks, ""); len(infos) != 1 || infos[0].Name != "name" {
		t.Errorf("%+v", infos)
	}
}

func TestAForceReleaseOnRedisMatchesTheHandle(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	operator := operates(t, rdb, redislock.WithPrefix(share.Prefix))
	x := hold(t, locker(t, dial(t, &redis.Options{Addr: share.Addr}), redislock.WithPrefix(share.Prefix)), "name", core.WithLabel("host-1"))
	waiting := locker(t, dial(t, &redis.Options{Addr: share.Addr}), redislock.WithPrefix(share.Prefix))
	next := make(chan *core.Lease, 1)
	go func() {
		y, err := waiting.Acquire(context.WithoutCancel(t.Context()), "name")
		if err != nil {
			t.Error(err)
		}
		next <- y
	}()
	handle := handleOf(t, operator, "name")
	for _, wrong := range []string{handle[:15], handle + "0", "0123456789abcdef"} {
		if held := another(t, operator.Evict(t.Context(), "name", wrong)); held.Label != "host-1" {
			t.Errorf("handle %s beside %s: %+v", wrong, handle, held)
		}
	}
	ok(t, operator.Evict(t.Context(), "name", handle))
	y := <-next
	<-x.Context().Done()
	if lost, ok := errors.AsType[*core.LostError](x.Err()); !ok || lost.Reason != core.ReasonTaken {
		t.Errorf("the released holder: %v", x.Err())
	}
	if y.Fence() <= x.Fence() {
		t.Errorf("fence %d after %d", y.Fence(), x.Fence())
	}
	ok(t, y.Release(t.Context()))
	is(t, operator.Evict(t.Context(), "name", handle), driver.ErrNotOwner)
}

// The handles are those of the first 22 characters, as if they were a token.
func TestAForceReleaseLeavesAloneWhatIsForeign(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	operator := operates(t, rdb, redislock.WithPrefix(share.Prefix))
	for what, value := range map[string]string{
		"foreign":       "bm90IGhvbGRmYXN0J3M=",
		"digits":        "7",
		"foreign magic": "short\x1flabel",
		"long foreign":  strings.Repeat("t", 23) + "label",
	} {
		key := share.Prefix + "name"
		ok(t, rdb.Set(t.Context(), key, value, time.Minute).Err())
		sum := sha1.Sum([]byte(value[:min(22, len(value))]))
		_ = another(t, operator.Evict(t.Context(), "name", hex.EncodeToString(sum[:8])))
		if rdb.Get(t.Context(), key).Val() != value {
			t.Errorf("%s: it was deleted", what)
		}
	}
}

func TestAForceReleaseTellsTheFirstInLine(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	client := strings.Repeat("c", 22) // the name of a channel
	line := "{" + share.Prefix + "name}:v1:line"
	ok(t, rdb.Set(t.Context(), share.Prefix+"name", strings.Repeat("t", 22)+"\x1flabel", time.Minute).Err())
	ok(t, rdb.ZAdd(t.Context(), line, redis.Z{Score: 1, Member: client + "place"}).Err())
	ok(t, rdb.HSet(t.Context(), line+":beats", client+"place", time.Now().Add(9*time.Second).UnixMilli()).Err())
	sub := rdb.Subscribe(t.Context(), "{"+share.Prefix+"}:v1:wake:"+client)
	t.Cleanup(func() { _ = sub.Close() })
	_, err := sub.Receive(t.Context()) // it is subscribed
	ok(t, err)
	operator := operates(t, rdb, redislock.WithPrefix(share.Prefix))
	ok(t, operator.Evict(t.Context(), "name", handleOf(t, operator, "name")))
	heard, err := sub.ReceiveTimeout(t.Context(), 10*time.Second)
	ok(t, err)
	if m, ok := heard.(*redis.Message); !ok || m.Payload != "place" {
		t.Errorf("%v", heard)
	}
}

func TestARenewalChangesNoValue(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	store := redislock.New(rdb, redislock.WithPrefix(share.Prefix))
	c := driver.Claim{Name: "name", Token: strings.Repeat("t", 22), Label: "la bel", TTL: time.Minute}
	_, err := store.Acquire(t.Context(), c)
	ok(t, err)
	for _, ttl := range []time.Duration{time.Minute, 0, time.Hour} {
		c.TTL = ttl
		ok(t, errors.Join(store.Renew(t.Context(), []driver.Claim{c})...))
		if got := rdb.Get(t.Context(), share.Prefix+"name").Val(); got != c.Token+"\x1fla bel" {
			t.Errorf("%s: %q", ttl, got)
		}
		if left := rdb.PTTL(t.Context(), share.Prefix+"name").Val(); left > max(ttl, time.Minute) || left < max(ttl, time.Minute)/2 {
			t.Errorf("%s: %s left", ttl, left)
		}
	}
	c.Token = strings.Repeat("x", 22)
	if errs := store.Renew(t.Context(), []driver.Claim{c}); !errors.Is(errs[0], driver.ErrNotOwner) {
		t.Error(errs)
	}
}

func TestRenewalsGoOnWhereMemoryIsFull(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name")
	w.do(t, "config", "set", "maxmemory", "1")
	lasts(t, x)
	w.do(t, "config", "set", "maxmemory", "0")
	ok(t, x.Release(t.Context()))
}

func TestInspectingSaysThatTheServerIsGone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.server.Kill()
	store := redislock.New(w.direct)
	_, err := store.Inspect(t.Context(), "name")
	refused(t, err)
	refused(t, store.Evict(t.Context(), "name", "handle"))
	for _, err := range store.Leases(t.Context(), "") {
		refused(t, err)
	}
}

// The permissions that the documentation of Leases gives for those who only look.
var lookingACL = []any{
	"resetkeys", "~holdfast:*", "~{holdfast:*", "resetchannels",
	"-@all", "+evalsha", "+eval", "+get", "+pttl", "+time", "+zrange", "+hget", "+scan", "+hello", "+ping",
}

func TestWhoOnlyLooksNeedsNoMoreAndCanDoNoHarm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.do(t, append([]any{"acl", "setuser", "looks", "on", ">secret"}, lookingACL...)...)
	x := hold(t, w.locks, "name")
	handle := handleOf(t, redislock.New(w.direct), "name")
	looks := operates(t, dial(t, &redis.Options{Addr: w.server.Addr(), Username: "looks", Password: "secret"}))
	if infos := list(t, looks, ""); len(infos) != 1 || infos[0].Handle != handle {
		t.Errorf("%+v", infos)
	}
	refused(t, looks.Evict(t.Context(), "name", handle))
	_, err := looks.TryAcquire(t.Context(), "other")
	is(t, err, core.ErrUnavailable)
	renewed(t, x)

	w.do(t, append([]any{"acl", "setuser", "locks", "on", ">secret"}, minimalACL...)...)
	locks := redislock.New(dial(t, &redis.Options{Addr: w.server.Addr(), Username: "locks", Password: "secret"}))
	for _, err := range locks.Leases(t.Context(), "") {
		refused(t, err) // NOPERM for scan
	}
	ok(t, locks.Evict(t.Context(), "name", handle))
}

func TestAClusterIsListedAsAWhole(t *testing.T) {
	t.Parallel()
	server := servers.Redis(t, "--cluster-enabled", "yes")
	ok(t, dial(t, &redis.Options{Addr: server.Addr()}).Do(t.Context(), "cluster", "addslotsrange", 0, 16383).Err())
	rdb := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{server.Addr()}, ContextTimeoutEnabled: true})
	t.Cleanup(func() { _ = rdb.Close() })
	locks := operates(t, rdb)
	eventually(t, "the cluster is up", func() bool {
		x, err := locks.TryAcquire(t.Context(), "warm")
		return err == nil && x.Release(t.Context()) == nil
	})
	for i := range 50 {
		hold(t, locks.Locker, fmt.Sprintf("name-%d", i))
	}
	if infos := list(t, locks, "name-"); len(infos) != 50 {
		t.Errorf("%d names", len(infos))
	}
	ok(t, locks.Evict(t.Context(), "name-7", handleOf(t, locks, "name-7")))
}

func TestInspectingWorksOnMiniredisToo(t *testing.T) {
	t.Parallel()
	m := miniredis.NewMiniRedis()
	m.ClockTTL(true)
	locks := operates(t, dial(t, &redis.Options{Dialer: func(context.Context, string, string) (net.Conn, error) { return buffered(m.Dial()) }}))
	hold(t, locks.Locker, "name", core.WithLabel("host-1"))
	if infos := list(t, locks, ""); len(infos) != 1 || infos[0].Label != "host-1" {
		t.Errorf("%+v", infos)
	}
	ok(t, locks.Evict(t.Context(), "name", handleOf(t, locks, "name")))
}
