package redislock

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// A release whose answer was lost is sent again, and may meet itself in one call. It frees the name once, and serves one
// of those who wait.
func TestANameThatIsReleasedTwiceInOneCallIsServedOnce(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: servers.Redis(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	s, ctx := New(rdb), t.Context()
	c := driver.Claim{Name: "name", Token: "token-0000000000000001", TTL: time.Minute}
	if _, err := s.Acquire(ctx, c); err != nil {
		t.Fatal(err)
	}
	line, beats := s.lineKeys(c.Name)
	dead := time.Now().Add(9 * time.Second).UnixMilli()
	for i, member := range []string{"first", "second"} {
		offer := "1 nonce 1 " + millis(10*time.Second) + " " + member + magic
		if err := rdb.ZAdd(ctx, line, redis.Z{Score: float64(i), Member: member}).Err(); err != nil {
			t.Fatal(err)
		}
		if err := rdb.HSet(ctx, beats, member, dead, "@"+member, offer).Err(); err != nil {
			t.Fatal(err)
		}
	}
	for i, p := range s.trip(ctx, []command{s.merged(releases, c), s.merged(releases, c)}) {
		if p.reply != int64(1) || p.err != nil {
			t.Errorf("release %d: %v, %v", i, p.reply, p.err)
		}
	}
	if owner := rdb.Get(ctx, "holdfast:name").Val(); owner != "first"+magic {
		t.Errorf("the owner is %q", owner)
	}
	if left := rdb.ZRange(ctx, line, 0, -1).Val(); len(left) != 1 || left[0] != "second" {
		t.Errorf("%q wait", left)
	}
}

// A call for claims with several TTLs gives each its own.
func TestMergedClaimsHaveTheirOwnTTLs(t *testing.T) {
	t.Parallel()
	rdb := redis.NewClient(&redis.Options{Addr: servers.Redis(t).Addr()})
	t.Cleanup(func() { _ = rdb.Close() })
	s, ctx := New(rdb), t.Context()
	for _, ttls := range [][]time.Duration{{time.Minute, time.Minute, time.Minute}, {time.Minute, time.Hour, time.Minute}} {
		var commands []command
		for i, ttl := range ttls {
			commands = append(commands, s.merged(acquires, driver.Claim{Name: decimal(int64(i)), Token: "token-0000000000000001", TTL: ttl}))
		}
		var last uint64
		for i, p := range s.trip(ctx, commands) {
			g, err := granted(p.reply)
			if err != nil || p.err != nil || g.Fence <= last {
				t.Fatalf("claim %d: %v, %v", i, p.reply, p.err)
			}
			last = g.Fence
			if left := rdb.PTTL(ctx, "holdfast:"+decimal(int64(i))).Val(); left > ttls[i] || left < ttls[i]-30*time.Second {
				t.Errorf("claim %d: %s left of %s", i, left, ttls[i])
			}
		}
	}
}

// What answers all in one number is a fence, or that all are released. Nobody is granted anything by another number.
func TestNobodyBelievesANumberThatIsNoAnswerToAll(t *testing.T) {
	t.Parallel()
	for _, m := range []*merger{acquires, releases} {
		c := command{merger: m, script: m.script}
		for _, reply := range []any{int64(0), int64(-1), []any{int64(1)}, "1"} {
			if got, err := c.answered(reply, 1, 2, nil); err == nil {
				t.Errorf("%v to two answers the second one %v", reply, got)
			}
		}
	}
}
