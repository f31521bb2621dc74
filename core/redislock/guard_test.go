package redislock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

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
	p := part(t)
	guard, key, ctx := newGuard(t, p.direct), p.key("order:42"), t.Context()
	const f = 1_795_000_000_000_001 // Lua prints such numbers without their last digits
	ok(t, guard.Do(ctx, f, "SET", key, "a").Err())
	ok(t, guard.Do(ctx, f, "APPEND", key, "b").Err()) // a holder may write twice
	wantStale(t, guard.Do(ctx, f-1, "APPEND", key, "late").Err(), key, f-1, f)
	wantStale(t, guard.Do(ctx, 999, "APPEND", key, "late").Err(), key, 999, f)
	if value := guard.Do(ctx, f+1, "GET", key).Val(); value != "ab" {
		t.Errorf("the value is %q", value)
	}
	wantStale(t, guard.Do(ctx, f, "APPEND", key, "late").Err(), key, f, f+1) // the new holder has only read
	if err := guard.Do(ctx, f+2, "HSET", key, "a", 1).Err(); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("%v; want WRONGTYPE", err)
	}
	wantStale(t, guard.Do(ctx, f+1, "SET", key, "late").Err(), key, f+1, f+2) // an error of the command still shows the fence
	ok(t, guard.Do(ctx, fence.Max, "DEL", key).Err())
	wantStale(t, guard.Do(ctx, f+1, "SET", key, "late").Err(), key, f+1, fence.Max)
	if n := p.direct.Exists(ctx, key).Val(); n != 0 {
		t.Error("a late write after a deletion got in")
	}
}

func TestGuardAnswersAsRedisDoes(t *testing.T) {
	t.Parallel()
	p := part(t)
	guard, ctx := newGuard(t, p.direct), t.Context()
	for i, command := range [][]any{
		{"SET", "s", "v", "PX", 60_000}, {"GET", "s"}, {"GET", "none"}, {"INCRBY", "n", 1 << 40}, {"HSET", "h", "a", 1, "b", "\x00\xff"},
		{"HMGET", "h", "a", "c"}, {"ZADD", "z", 1.5, "m"}, {"ZSCORE", "z", "m"}, {"LRANGE", "l", 0, -1}, {"TYPE", "h"},
		{"HGET", "s", "a"}, {"NOSUCHCOMMAND", "s"}, {"SET", "s"}, {"INCR", "s"},
	} {
		direct := append([]any{command[0], p.key("direct:" + command[1].(string))}, command[2:]...)
		want := p.direct.Do(ctx, direct...)
		got := guard.Do(ctx, uint64(1+i), command[0].(string), p.key("guarded:"+command[1].(string)), command[2:]...)
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
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"a": "127.0.0.1:1"}})
	t.Cleanup(func() { _ = ring.Close() })
	do := func(f uint64, command, key string) error { return guard.Do(t.Context(), f, command, key, "v").Err() }
	made := func(rdb redis.UniversalClient, remember time.Duration) error {
		_, err := redislock.NewGuard(rdb, remember)
		return err
	}
	for what, err := range map[string]error{
		"no fence":                do(0, "SET", "k"),
		"fence too large":         do(fence.Max+1, "SET", "k"),
		"negative as uint":        do(1<<64-1, "SET", "k"),
		"no command":              do(1, "", "k"),
		"no key":                  do(1, "SET", ""),
		"empty tag":               do(1, "SET", "a{}b"),
		"brace that is not close": do(1, "SET", "a{b"),
		"brace that is not open":  do(1, "SET", "a}b"),
		"braces the wrong way":    do(1, "SET", "}a{"),
		"nil client":              made(nil, time.Hour),
		"Ring":                    made(ring, time.Hour),
		"no memory":               made(rdb, 0),
		"negative memory":         made(rdb, -time.Hour),
		"milliseconds":            made(rdb, time.Second-1),
	} {
		typed, isTyped := err.(interface{ ErrorType() string })
		if !errors.Is(err, fence.ErrInvalid) || errors.Is(err, fence.ErrStale) || !isTyped || typed.ErrorType() != "invalid" {
			t.Errorf("%s: %v", what, err)
		}
	}
}

func TestGuardsMemoryLastsAsLongAsItSays(t *testing.T) {
	t.Parallel()
	m := miniredis.RunT(t)
	guard, ctx := newGuard(t, dial(t, &redis.Options{Addr: m.Addr()})), t.Context()
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
	p := part(t)
	guard, key, ctx := newGuard(t, p.direct), p.key("k"), t.Context()
	side := "{" + key + "}:v1:seen:" + key
	p.do(t, "set", side, "-5")
	if err := guard.Do(ctx, 20, "SET", key, "v").Err(); err == nil {
		t.Error("text was taken for a fence")
	}
	p.do(t, "del", side)
	p.do(t, "hset", side, "a", 1)
	if err := guard.Do(ctx, 20, "SET", key, "v").Err(); !redis.HasErrorPrefix(err, "WRONGTYPE") {
		t.Errorf("%v; want WRONGTYPE", err)
	}
	if n := p.direct.Exists(ctx, key).Val(); n != 0 {
		t.Error("it was written all the same")
	}
}

func TestGuardedWritersInAHurryEndInOrder(t *testing.T) {
	t.Parallel()
	p := part(t)
	guard, key := newGuard(t, p.direct), p.key("list")
	crowd(8, func(int) {
		for range 200 {
			f := 1_795_000_000_000_000 + rand.Uint64N(1000)
			if err := guard.Do(t.Context(), f, "RPUSH", key, f).Err(); err != nil && !errors.Is(err, fence.ErrStale) {
				t.Error(err)
			}
		}
	})
	last := ""
	for _, value := range p.direct.LRange(t.Context(), key, 0, -1).Val() {
		if value < last {
			t.Fatalf("%s comes after %s", value, last)
		}
		last = value
	}
}
