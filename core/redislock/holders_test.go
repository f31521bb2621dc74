package redislock_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// The holders have a key of their own beside the lock. It was evicted, as it has a TTL; or it has gone with the
// last of them in the very millisecond in which the next one comes.
func TestHoldersWhoseKeyHasGoneDoNotStayForEver(t *testing.T) {
	t.Parallel()
	rdb := dial(t, &redis.Options{Addr: servers.Redis(t).Addr()})
	s := store(t, rdb)
	reader := func(token string) driver.Claim {
		return driver.Claim{Name: "name", Token: strings.Repeat(token, 22), TTL: time.Minute, Limit: driver.Readers}
	}
	_, err := s.Acquire(t.Context(), reader("a"))
	ok(t, err)
	holders := "{holdfast:name}:v1:holders"
	if n := rdb.Del(t.Context(), holders).Val(); n != 1 {
		t.Fatalf("%d keys at %s", n, holders)
	}
	_, err = s.Acquire(t.Context(), reader("b"))
	ok(t, err)
	if left := rdb.PTTL(t.Context(), holders).Val(); left <= 0 {
		t.Errorf("the holders have a TTL of %v", left)
	}
}

// A hash beside the holders says since when each is one, and its label.
func TestTheNoteOfAHolderGoesWithIt(t *testing.T) {
	t.Parallel()
	rdb := dial(t, &redis.Options{Addr: servers.Redis(t).Addr()})
	s := store(t, rdb)
	const holders, notes = "{holdfast:name}:v1:holders", "{holdfast:name}:v1:holders:notes"
	join := func(token string, life time.Duration) driver.Claim {
		t.Helper()
		c := driver.Claim{Name: "name", Token: strings.Repeat(token, 22), TTL: life, Limit: 5, Label: "who"}
		_, err := s.Acquire(t.Context(), c)
		ok(t, err)
		return c
	}
	stay := func(what string, n int64) {
		t.Helper()
		if there := rdb.HLen(t.Context(), notes).Val(); there != n {
			t.Errorf("%s: %d notes, not %d", what, there, n)
		}
		if of, with := rdb.PTTL(t.Context(), notes).Val(), rdb.PTTL(t.Context(), holders).Val(); of < with-time.Second || of > with+time.Second {
			t.Errorf("%s: the notes last for %s, the holders for %s", what, of, with)
		}
	}
	a, b := join("a", time.Minute), join("b", 2*time.Minute)
	stay("two", 2)
	ok(t, s.Release(t.Context(), b))
	stay("one has left", 1)
	c := join("c", 50*time.Millisecond)
	c.TTL = 0 // only to ask
	eventually(t, "it is over", func() bool { return s.Renew(t.Context(), []driver.Claim{c})[0] != nil })
	d := join("d", time.Minute)
	stay("one has died", 2)
	a.TTL = 3 * time.Minute
	ok(t, s.Renew(t.Context(), []driver.Claim{a})[0])
	stay("one was renewed", 2)
	info, err := s.Inspect(t.Context(), "name")
	ok(t, err)
	ok(t, s.Evict(t.Context(), "name", info.Holders[0].Handle))
	stay("one was taken the name from", 1)
	for _, c := range []driver.Claim{a, d} {
		_ = s.Release(t.Context(), c) // one of them has lost it
	}
	if n := rdb.Exists(t.Context(), holders, notes).Val(); n != 0 {
		t.Errorf("%d keys are left", n)
	}
}

// Notes are for people: a holder does without.
func TestWhoseNoteHasGoneIsAHolderAllTheSame(t *testing.T) {
	t.Parallel()
	rdb := dial(t, &redis.Options{Addr: servers.Redis(t).Addr()})
	s := store(t, rdb)
	const notes = "{holdfast:name}:v1:holders:notes"
	c := driver.Claim{Name: "name", Token: strings.Repeat("a", 22), TTL: time.Minute, Limit: driver.Readers, Label: "who"}
	_, err := s.Acquire(t.Context(), c)
	ok(t, err)
	ok(t, rdb.Del(t.Context(), notes).Err())
	ok(t, s.Renew(t.Context(), []driver.Claim{c})[0])
	info, err := s.Inspect(t.Context(), "name")
	ok(t, err)
	if len(info.Holders) != 1 || info.Holders[0].Label != "" || info.Holders[0].HeldFor != 0 {
		t.Errorf("%+v", info)
	}
	ok(t, s.Release(t.Context(), c))
	ok(t, rdb.Set(t.Context(), notes, "something else", 0).Err())
	_, err = s.Acquire(t.Context(), c)
	ok(t, err)
	ok(t, s.Release(t.Context(), c))
}

// A place at the head of the queue keeps others of the holders' kind out, though there is room for them beside.
func TestWhoLeavesTellsTheNextWhoMayJoinTheHolders(t *testing.T) {
	t.Parallel()
	for what, kinds := range map[string]struct{ holder, leaver func(*driver.Claim) }{
		"a reader beside a limited number": {permit, reader}, "one of a limited number beside readers": {reader, permit},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			rdb := dial(t, &redis.Options{Addr: servers.Redis(t).Addr()})
			s := store(t, rdb)
			_, err := s.Acquire(t.Context(), with(claimBy("name", "holder"), kinds.holder))
			ok(t, err)
			leaver, next := with(claimBy("name", "leaver"), kinds.leaver), with(claimBy("name", "next"), kinds.holder)
			look(t, s, leaver)
			told := make(chan error, 1)
			go func() {
				ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second) // before the first place is dead
				defer cancel()
				_, err := s.Wait(ctx, next)
				told <- err
			}()
			eventually(t, "the next stands in line", func() bool { return rdb.ZCard(t.Context(), lineKey).Val() == 2 })
			is(t, s.Release(t.Context(), leaver), driver.ErrNotOwner)
			ok(t, <-told)
		})
	}
}
