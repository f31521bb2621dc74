package natslock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
)

// open returns a Store on a server of its own.
func open(t *testing.T) *Store {
	t.Helper()
	return newWorld(t).near
}

func minute(name, token string) driver.Claim {
	return driver.Claim{Name: name, Token: token, TTL: time.Minute}
}

// seen is the state that a claim meets.
func (s *Store) seen(t *testing.T, c driver.Claim) *state {
	t.Helper()
	now, err := s.look(t.Context(), c, false)
	ok(t, err)
	return now
}

// queues puts a claim into the queue.
func (s *Store) queues(t *testing.T, c driver.Claim) {
	t.Helper()
	_, _, err := s.queue(t.Context(), c)
	if _, held := errors.AsType[*driver.Held](err); !held || s.seen(t, c).own == nil {
		t.Fatalf("it is not in the queue: %v", err)
	}
}

func TestAQueueHasRoomForMoreProcessesThanThereAre(t *testing.T) {
	t.Parallel()
	s := open(t)
	now := &state{slots: make(map[int]*entry)}
	for slot := range slots {
		if free, ok := now.freeSlot(); !ok || free > slot+len(now.queue)+4 {
			t.Fatalf("slot %d of %d that are taken", free, slot)
		}
		now.slots[slot] = &entry{key: slotKey("name", slot)}
		now.queue = append(now.queue, waiter{})
		w := write{key: slotKey("name", slot), value: valueOf(record{ID: digest(fmt.Sprint(slot)), TTL: time.Hour.Milliseconds()}), ttl: time.Hour}
		_, err := s.put(t.Context(), w)
		ok(t, err)
	}
	if _, ok := now.freeSlot(); ok {
		t.Error("more entries than slots")
	}
	c := minute("name", "token")
	_, what, err := s.queue(t.Context(), c)
	if _, held := errors.AsType[*driver.Held](err); !held || what != "" || s.seen(t, c).own != nil {
		t.Errorf("in a queue that is full: %q, %v", what, err)
	}
	now.slots[7].deleted = true // a slot that was left is taken again
	if slot, ok := now.freeSlot(); !ok || slot != 7 {
		t.Errorf("slot %d, %t", slot, ok)
	}
}

func TestEveryStringIsAKeyOfItsOwn(t *testing.T) {
	t.Parallel()
	values := []string{"", "=", "==", "=2", "=2E", ".", "a.b", "a=2Eb", "A", "a", "*", ">", "$", " ", "\x00", "ü", "u\u0308"}
	for _, v := range hostile.Values() {
		values = append(values, v)
	}
	for _, v := range values {
		if back, ok := decode(encode(v)); !ok || back != v {
			t.Errorf("%.40q has the key %.40q, which is that of %.40q", v, encode(v), back)
		}
	}
	for _, none := range []string{"=2", "=2e", "a=", "=61", "=XX", ".", "a b"} {
		if v, ok := decode(none); ok {
			t.Errorf("%q became %q", none, v)
		}
	}
}

func TestWhoFreesANameOrLeavesTheQueueTellsThoseWhoWaitForIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	told, err := s.conn.SubscribeSync("holdfast.locks.>")
	ok(t, err)
	owner, waiter := minute("na.me", "owner"), minute("na.me", "waiter")
	got := func(c driver.Claim) { granted(t, s, c) }
	for _, step := range []struct {
		what, want string
		do         func()
	}{
		{"a release", lockFreed, func() { got(owner); ok(t, s.Release(t.Context(), owner)) }},
		{"an entry that leaves", digest("waiter"), func() { got(owner); s.queues(t, waiter); _ = s.Release(t.Context(), waiter) }},
		{"a release after that", lockFreed, func() { s.queues(t, waiter); ok(t, s.Release(t.Context(), owner)) }},
		{"a grant", digest("waiter"), func() { got(waiter) }},
		{"a release of that", lockFreed, func() { ok(t, s.Release(t.Context(), waiter)) }},
		{"the last one of several readers", lockFreed, func() {
			for _, token := range []string{"one", "two"} { // the first tells nobody: a writer would not get the name
				got(reader("na.me", token))
			}
			ok(t, s.Release(t.Context(), reader("na.me", "one")))
			ok(t, s.Release(t.Context(), reader("na.me", "two")))
		}},
		{"a permit", lockFreed, func() {
			got(permit("na.me", "one"))
			got(permit("na.me", "two"))
			ok(t, s.Release(t.Context(), permit("na.me", "one")))
		}},
		{"the last permit", lockFreed, func() { ok(t, s.Release(t.Context(), permit("na.me", "two"))) }},
		{"the end of what was left, by an operator", lockFreed, func() {
			c := handingOff("na.me", "left")
			got(c)
			ok(t, s.Release(t.Context(), c)) // the name stays taken
			ok(t, s.Evict(t.Context(), c.Name, handle(digest(c.Handoff))))
		}},
	} {
		step.do()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		m, err := told.NextMsgWithContext(ctx)
		cancel()
		if err != nil || m.Subject != "holdfast.locks.na=2Eme."+step.want {
			t.Fatalf("%s: %+v, %v", step.what, m, err)
		}
	}
	ok(t, s.conn.Flush())
	if more, _, err := told.Pending(); err != nil || more > 0 {
		t.Errorf("%d more, %v", more, err)
	}
}
