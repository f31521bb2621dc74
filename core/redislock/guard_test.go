package redislock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/fence"
	"github.com/holdfast-go/holdfast/core/redislock"
)

func newGuard(t *testing.T, rdb redis.UniversalClient) *redislock.Guard {
	t.Helper()
	guard, err := redislock.NewGuard(rdb, time.Hour)
	ok(t, err)
	return guard
}

func wantStale(t *testing.T, err error, key string, mine, seen uint64) {
	t.Helper()
	stale, isStale := errors.AsType[*fence.StaleError](err)
	if want := (fence.StaleError{Key: key, Fence: mine, Seen: seen}); !isStale || *stale != want {
		t.Errorf("%v; want %v", err, &want)
	}
}

func TestGuardRefusesTheLateWrite(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	guard, key, ctx := newGuard(t, rdb), share.Prefix+"order:42", t.Context()
	const f = 1_795_000_000_000_001 // Lua prints such numbers without their last digits
	ok(t, guard.Do(ctx, f, "SET", key, "a").Err())
	ok(t, guard.Do(ctx, f, "APPEND", key, "b").Err()) // a holder may write twice
	wantStale(t, guard.Do(ctx, f-1, "APPEND", key, "late").Err(), key, f-1, f)
	wantStale(t, guard.Do(ctx, 999, "APPEND", key, "late").Err(), key, 999, f)
	if value := guard.Do(ctx, f+1, "GET", key).Val(); value != "ab" {
		t.Errorf("the value is %q", value)
	}
	wantStale(t, guard.Do(ctx, f, "APPEND", key, "late").Err(), key, f, f+1) // the new holder has only read
	ok(t, guard.Do(ctx, fence.Max, "DEL", key).Err())
	wantStale(t, guard.Do(ctx, f+1, "SET", key, "late").Err(), key, f+1, fence.Max)
	if n := rdb.Exists(ctx, key).Val(); n != 0 {
		t.Error("a late write after a deletion got in")
	}
}

func TestGuardAnswersAsRedisDoes(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	guard, ctx := newGuard(t, rdb), t.Context()
	for i, command := range [][]any{
		{"SET", "s", "v", "PX", 60_000}, {"GET", "s"}, {"GET", "none"}, {"INCRBY", "n", 1 << 40}, {"HSET", "h", "a", 1, "b", "\x00\xff"},
		{"HMGET", "h", "a", "c"}, {"ZADD", "z", 1.5, "m"}, {"ZSCORE", "z", "m"}, {"LRANGE", "l", 0, -1}, {"TYPE", "h"},
		{"HGET", "s", "a"}, {"NOSUCHCOMMAND", "s"}, {"SET", "s"}, {"INCR", "s"},
	} {
		direct := append([]any{command[0], share.Prefix + "direct:" + command[1].(string)}, command[2:]...)
		want := rdb.Do(ctx, direct...)
		got := guard.Do(ctx, uint64(1+i), command[0].(string), share.Prefix+"guarded:"+command[1].(string), command[2:]...)
		if fmt.Sprint(got.Val()) != fmt.Sprint(want.Val()) || (got.Err() == nil) != (want.Err() == nil) || errors.Is(got.Err(), redis.Nil) != errors.Is(want.Err(), redis.Nil) {
			t.Errorf("%q: %v, %v; want %v, %v", command, got.Val(), got.Err(), want.Val(), want.Err())
		}
		if errors.Is(got.Err(), fence.ErrStale) || errors.Is(got.Err(), fence.ErrInvalid) {
			t.Errorf("%q: %v", command, got.Err())
		}
	}
}

func TestGuardRefusesBadInputBeforeItSendsAnything(t *testing.T) {
	t.Parallel()
	rdb := dial(t, &redis.Options{Addr: "127.0.0.1:1"}) // where nobody listens
	guard := newGuard(t, rdb)
	type row struct {
		fence        uint64
		command, key string
	}
	for what, in := range map[string]row{
		"no fence":                {0, "SET", "k"},
		"fence too large":         {fence.Max + 1, "SET", "k"},
		"negative as uint":        {1<<64 - 1, "SET", "k"},
		"no command":              {1, "", "k"},
		"no key":                  {1, "SET", ""},
		"empty tag":               {1, "SET", "a{}b"},
		"brace that is not close": {1, "SET", "a{b"},
		"brace that is not open":  {1, "SET", "a}b"},
		"braces the wrong way":    {1, "SET", "}a{"},
	} {
		cmd := guard.Do(t.Context(), in.fence, in.command, in.key, "v")
		if !errors.Is(cmd.Err(), fence.ErrInvalid) || errors.Is(cmd.Err(), fence.ErrStale) {
			t.Errorf("%s: %v", what, cmd.Err())
		}
		if typed, isTyped := cmd.Err().(interface{ ErrorType() string }); !isTyped || typed.ErrorType() != "invalid" {
			t.Errorf("%s: %v has no type", what, cmd.Err())
		}
	}
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	for what, err := range map[string]error{
		"nil client":   second(redislock.NewGuard(nil, time.Hour)),
		"Ring":         second(redislock.NewGuard(ring, time.Hour)),
		"no memory":    second(redislock.NewGuard(rdb, 0)),
		"negative":     second(redislock.NewGuard(rdb, -time.Hour)),
		"milliseconds": second(redislock.NewGuard(rdb, time.Second-1)),
	} {
		if !errors.Is(err, fence.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func second(_ *redislock.Guard, err error) error { return err }

func TestAnErrorOfTheCommandStillShowsTheFence(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	guard, key, ctx := newGuard(t, rdb), share.Prefix+"order:42", t.Context()
	ok(t, rdb.Set(ctx, key, "text", 0).Err())
	if err := guard.Do(ctx, 12, "HSET", key, "a", 1).Err(); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("%v; want WRONGTYPE", err)
	}
	wantStale(t, guard.Do(ctx, 11, "SET", key, "late").Err(), key, 11, 12)
}

func TestGuardsMemoryLastsAsLongAsItSays(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	rdb := dial(t, &redis.Options{Addr: m.Addr()})
	guard, ctx := newGuard(t, rdb), t.Context()
	for range 3 { // each command begins the time anew
		ok(t, guard.Do(ctx, 12, "SET", "k", "v").Err())
		m.FastForward(time.Hour - time.Millisecond)
	}
	wantStale(t, guard.Do(ctx, 11, "SET", "k", "late").Err(), "k", 11, 12)
	m.FastForward(time.Millisecond)
	ok(t, guard.Do(ctx, 11, "SET", "k", "v").Err())
	if keys := m.Keys(); len(keys) != 2 {
		t.Errorf("keys: %q", keys)
	}
}

func TestGuardTrustsNothingThatIsNoFence(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	guard, key, ctx := newGuard(t, rdb), share.Prefix+"k", t.Context()
	side := "{" + key + "}:v1:seen:" + key
	ok(t, rdb.Set(ctx, side, "-5", 0).Err())
	if err := guard.Do(ctx, 20, "SET", key, "v").Err(); err == nil {
		t.Error("text was taken for a fence")
	}
	ok(t, rdb.Del(ctx, side).Err())
	ok(t, rdb.HSet(ctx, side, "a", 1).Err())
	if err := guard.Do(ctx, 20, "SET", key, "v").Err(); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("%v; want WRONGTYPE", err)
	}
	if n := rdb.Exists(ctx, key).Val(); n != 0 {
		t.Error("it was written all the same")
	}
}

func TestGuardLoadsItsScriptAgain(t *testing.T) {
	t.Parallel()
	srv := servers.Redis(t)
	rdb := dial(t, &redis.Options{Addr: srv.Addr()})
	guard, ctx := newGuard(t, rdb), t.Context()
	for f := uint64(1); f < 20; f++ {
		ok(t, guard.Do(ctx, f, "SET", "k", f).Err())
		ok(t, rdb.ScriptFlush(ctx).Err())
	}
}

func TestGuardedWritersInAHurryEndInOrder(t *testing.T) {
	t.Parallel()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	guard, key := newGuard(t, rdb), share.Prefix+"list"
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 200 {
				f := 1_795_000_000_000_000 + rand.Uint64N(1000)
				if err := guard.Do(t.Context(), f, "RPUSH", key, f).Err(); err != nil && !errors.Is(err, fence.ErrStale) {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	values := rdb.LRange(t.Context(), key, 0, -1).Val()
	for i, last := 0, ""; i < len(values); i++ {
		if values[i] < last {
			t.Fatalf("%s comes after %s", values[i], last)
		}
		last = values[i]
	}
}
