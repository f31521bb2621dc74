package redislock_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redislock"
)

// earlier is a client of the version that kept no notes of holders and no labels of waiters: its scripts, as
// they were, with the keys and arguments that it sent.
type earlier struct {
	*testing.T
	rdb    *redis.Client
	prefix string
}

func (x earlier) run(script string, keys []string, args ...any) any {
	x.Helper()
	text, err := os.ReadFile("testdata/earlier/" + script + ".lua")
	ok(x.T, err)
	reply, err := x.rdb.Eval(x.Context(), string(text), keys, args...).Result()
	ok(x.T, err)
	return reply
}

func (x earlier) lock() string          { return x.prefix + "name" }
func (x earlier) fence() string         { return "{" + x.prefix + "}:v1:fence" }
func (x earlier) side(of string) string { return "{" + x.prefix + "name}:v1:" + of }
func (x earlier) channels() string      { return "{" + x.prefix + "}:v1:wake:" }
func (x earlier) member(place string) string {
	return strings.Repeat("e", 22) + (place + strings.Repeat("-", 22))[:22]
}

// joins says whether a member, such as "+token" or "*token", becomes one of the holders.
func (x earlier) joins(member, limit string) bool {
	x.Helper()
	keys := []string{x.lock(), x.fence(), x.side("line"), x.side("line:beats"), x.side("holders")}
	reply := x.run("join", keys, member, 60_000, limit, x.member(member[1:]), 3000, x.channels())
	_, granted := reply.(string)
	return granted
}

func (x earlier) extends(member string) bool {
	x.Helper()
	answers, _ := x.run("extend", []string{x.lock(), x.side("holders")}, member, 60_000).([]any)
	return len(answers) == 1 && answers[0] == int64(1)
}

func (x earlier) parts(member string) bool {
	x.Helper()
	keys := []string{x.lock(), x.side("line"), x.side("line:beats"), x.side("holders")}
	return x.run("part", keys, member, "", x.channels()) == int64(1)
}

// waits puts a place in the queue, with an offer, and says whether it should try now.
func (x earlier) waits(place string) bool {
	x.Helper()
	keys := []string{x.lock(), x.side("line"), x.side("line:beats"), x.fence()}
	token := (place + strings.Repeat("-", 22))[:22]
	answer, _ := x.run("wait", keys, x.member(place), token+"\x1f", 3000, x.channels(), "1 nonce 1 3000 "+token+"\x1fearlier").([]any)
	return len(answer) == 1 && answer[0] == int64(1)
}

func (x earlier) leaves(place string) {
	x.Helper()
	keys := []string{x.lock(), x.side("line"), x.side("line:beats"), x.fence()}
	x.run("leave", keys, (place + strings.Repeat("-", 22))[:22]+"\x1f", x.member(place), x.channels())
}

// sees is how many holders and places it shows.
func (x earlier) sees() (kind int64, label string, holders, places int) {
	x.Helper()
	answer, _ := x.run("inspect", []string{x.lock(), x.side("line"), x.side("line:beats"), x.side("holders")}, 100).([]any)
	const perHolder, perPlace = 3, 2
	several, _ := answer[5].([]any)
	line, _ := answer[6].([]any)
	kind, _ = answer[0].(int64)
	label, _ = answer[1].(string)
	return kind, label, len(several) / perHolder, len(line) / perPlace
}

// beside is a client of the earlier version, and a Store of this one, on one server.
func beside(t *testing.T) (earlier, *redislock.Store) {
	t.Helper()
	share := shared.Use(t)
	rdb := dial(t, &redis.Options{Addr: share.Addr})
	s := redislock.New(dial(t, &redis.Options{Addr: share.Addr}), redislock.WithPrefix(share.Prefix))
	t.Cleanup(func() { _ = s.CloseIdle(context.Background()) })
	return earlier{t, rdb, share.Prefix}, s
}

// In a rolling upgrade, both versions run for a while.
func TestHoldersOfTheEarlierVersionAndOfThisOneShareAName(t *testing.T) {
	t.Parallel()
	for what, kind := range map[string]struct {
		member, limit string
		claim         driver.Claim
	}{
		"readers":          {"+" + strings.Repeat("o", 22) + "\x1f", "0", driver.Claim{Shared: true}},
		"a limited number": {"*" + strings.Repeat("o", 22) + "\x1f2", "2", driver.Claim{Limit: 2}},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			old, s := beside(t)
			claim := func(token string) driver.Claim {
				c := claimBy("name", token)
				c.Label, c.Shared, c.Limit = "this version", kind.claim.Shared, kind.claim.Limit
				return c
			}
			mine, writer := claim("mine"), claimBy("name", "writer")
			look := func(want ...string) {
				t.Helper()
				info, err := s.Inspect(t.Context(), "name")
				ok(t, err)
				labels := make(map[string]int)
				for _, h := range info.Holders {
					labels[h.Label]++
					if known := h.Label != ""; known && h.HeldFor > time.Minute || !known && h.HeldFor != 0 {
						t.Errorf("%+v", h)
					}
				}
				for _, label := range want {
					labels[label]--
				}
				for label, n := range labels {
					if n != 0 {
						t.Errorf("%d too many of %q: %+v", n, label, info.Holders)
					}
				}
				if _, _, holders, _ := old.sees(); holders != len(want) {
					t.Errorf("the earlier version sees %d holders, not %d", holders, len(want))
				}
			}
			for range 2 { // whoever comes first
				if !old.joins(kind.member, kind.limit) {
					t.Fatal("the earlier version does not get a free name")
				}
				_, err := s.Acquire(t.Context(), mine)
				ok(t, err)
				look("", "this version")
				if _, err := s.Acquire(t.Context(), writer); err == nil {
					t.Error("a writer has it, too")
				}
				if kind.claim.Limit > 0 {
					if _, err := s.Acquire(t.Context(), claim("third")); err == nil {
						t.Error("this version lets in a third holder")
					}
					if old.joins("*"+strings.Repeat("t", 22)+"\x1f2", "2") {
						t.Error("the earlier version lets in a third holder")
					}
				}
				ok(t, errors.Join(s.Renew(t.Context(), []driver.Claim{mine})...))
				if !old.extends(kind.member) {
					t.Error("the earlier version has lost it")
				}
				look("", "this version")
				if !old.parts(kind.member) {
					t.Error("the earlier version cannot release it")
				}
				look("this version")
				if !old.joins(kind.member, kind.limit) || old.rdb.HLen(t.Context(), old.side("holders:notes")).Val() != 1 {
					t.Error("the earlier version does not join this one")
				}
				ok(t, s.Release(t.Context(), mine))
				look("")
				_, err = s.Acquire(t.Context(), mine)
				ok(t, err)
				ok(t, s.Release(t.Context(), mine))
				if !old.parts(kind.member) {
					t.Error("the earlier version cannot release it")
				}
			}
			_, err := s.Acquire(t.Context(), mine)
			ok(t, err)
			if !old.joins(kind.member, kind.limit) {
				t.Error("the earlier version does not join this one")
			}
			ok(t, s.Release(t.Context(), mine))
			if !old.parts(kind.member) {
				t.Error("the earlier version cannot release it")
			}
			if keys := old.rdb.Keys(t.Context(), "*"+old.prefix+"*").Val(); len(keys) > 1 {
				t.Errorf("left: %q", keys)
			}
		})
	}
}

func TestWaitersOfTheEarlierVersionAndOfThisOneStandInOneLine(t *testing.T) {
	t.Parallel()
	old, s := beside(t)
	held := claimBy("name", "holder")
	_, err := s.Acquire(t.Context(), held)
	ok(t, err)
	first, last := claimBy("name", "first"), claimBy("name", "last")
	for _, c := range []*driver.Claim{&first, &last} {
		c.Place, c.Label = (c.Token[:5] + strings.Repeat("p", 22))[:22], "this version"
	}
	first.Shared = true
	waits := func(c driver.Claim) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
		defer cancel()
		if err := s.Wait(ctx, c); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
	}
	look := func(want ...string) {
		t.Helper()
		info, err := s.Inspect(t.Context(), "name")
		ok(t, err)
		labels := make([]string, len(info.Line))
		for i, w := range info.Line {
			labels[i] = w.Label
		}
		if strings.Join(labels, ", ") != strings.Join(want, ", ") {
			t.Errorf("in line: %q, not %q", labels, want)
		}
		if _, _, _, places := old.sees(); places != len(want) {
			t.Errorf("the earlier version sees %d places, not %d", places, len(want))
		}
	}
	waits(first)
	if old.waits("earlier") {
		t.Error("it should try a name that is held")
	}
	waits(last)
	look("this version", "earlier", "this version")

	ok(t, s.Release(t.Context(), held)) // the first is a reader of this version: it is only told
	if old.waits("earlier") {
		t.Error("it comes before the first")
	}
	_, err = s.Acquire(t.Context(), first)
	ok(t, err)
	look("earlier", "this version")
	if old.waits("earlier") {
		t.Error("it should try beside a reader")
	}
	ok(t, s.Release(t.Context(), first))
	if !old.waits("earlier") {
		t.Error("it is the first now")
	}
	if _, err := s.Acquire(t.Context(), last); err == nil {
		t.Error("the last passes the first")
	}
	old.leaves("earlier")
	look("this version")
	dead := old.rdb.ZRange(t.Context(), old.side("line"), 0, 0).Val() // the last one dies, and the earlier version drops it
	ok(t, old.rdb.HSet(t.Context(), old.side("line:beats"), dead[0], 1).Err())
	if !old.waits("earlier") {
		t.Error("it is the first now")
	}
	if fields := old.rdb.HKeys(t.Context(), old.side("line:beats")).Val(); len(fields) != 2 {
		t.Errorf("of the dead one is left: %q", fields)
	}
	old.leaves("earlier")
	if keys := old.rdb.Keys(t.Context(), "*"+old.prefix+"*").Val(); len(keys) > 1 {
		t.Errorf("left: %q", keys)
	}
}

func TestANameThatEitherVersionKeepsIsShownByBoth(t *testing.T) {
	t.Parallel()
	old, s := beside(t)
	for _, handoff := range []string{"", strings.Repeat("h", driver.HandoffWidth)} {
		for _, fence := range []uint64{0, 7} {
			c := claimBy("name", "holder")
			c.Label = "who"
			_, err := s.Acquire(t.Context(), c)
			ok(t, err)
			c.Keep, c.Handoff, c.Fence = time.Minute, handoff, fence
			ok(t, s.Release(t.Context(), c))
			kept := time.Now()
			if kind, label, _, _ := old.sees(); (kind == 5) != (handoff != "") || label != "who" {
				t.Errorf("the earlier version sees kind %d of %q", kind, label)
			}
			info, err := s.Inspect(t.Context(), "name")
			ok(t, err)
			if !info.Kept || info.Label != "who" || info.HeldFor > time.Since(kept)+time.Second || handoff != "" && info.Fence != fence {
				t.Errorf("%+v", info)
			}
			eventually(t, "since when is known", func() bool {
				info, err = s.Inspect(t.Context(), "name")
				return err == nil && info.HeldFor >= 20*time.Millisecond
			})
			ok(t, s.Evict(t.Context(), "name", driver.Holder{Handle: info.Handle}))
		}
	}
	c := claimBy("name", "holder")
	_, err := s.Acquire(t.Context(), c)
	ok(t, err)
	old.run("keep", []string{old.lock()}, c.Token+"\x1f", "="+strings.Repeat("k", 21)+"\x1fearlier", 60_000)
	info, err := s.Inspect(t.Context(), "name")
	ok(t, err)
	if !info.Kept || info.Label != "earlier" || info.HeldFor != 0 {
		t.Errorf("%+v", info)
	}
}
