package natslock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/hostile"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// open returns a Store on a server of its own.
func open(t *testing.T) *Store {
	t.Helper()
	conn, err := nats.Connect("nats://" + servers.NATS(t).Addr())
	noError(t, err)
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn)
	noError(t, err)
	_, err = js.CreateKeyValue(t.Context(), Bucket("locks", 1))
	noError(t, err)
	return New(js, "locks")
}

var noError = backendtest.OK

func minute(name, token string) driver.Claim {
	return driver.Claim{Name: name, Token: token, TTL: time.Minute}
}

// seen is the state that a claim meets.
func (s *Store) seen(t *testing.T, c driver.Claim) *state {
	t.Helper()
	now, err := s.look(t.Context(), c, false)
	noError(t, err)
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

func TestAMarkerStandsEvenIfTheReleaseAfterItIsTooLate(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := minute("name", "token")
	c.Dedup = time.Hour
	_, err := s.Acquire(t.Context(), c)
	noError(t, err)
	noError(t, s.mark(t.Context(), c, s.seen(t, c))) // and the process dies
	noError(t, s.Release(t.Context(), c))            // by its retry
	other := minute("name", "other")
	other.Dedup = time.Hour
	if _, err := s.Acquire(t.Context(), other); err == nil {
		t.Error("granted")
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
		noError(t, err)
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
	keys := make(map[string]string)
	values := []string{"", "=", "==", "=2", "=2E", ".", "a.b", "a=2Eb", "A", "a", "*", ">", "$", " ", "\x00", "ü", "u\u0308"}
	for _, v := range hostile.Values() {
		values = append(values, v)
	}
	for _, v := range values {
		key := encode(v)
		if other, taken := keys[key]; taken && other != v {
			t.Errorf("%.40q and %.40q have the key %.40q", v, other, key)
		}
		keys[key] = v
		if back, ok := decode(key); !ok || back != v {
			t.Errorf("%.40q became %.40q", v, back)
		}
	}
	for _, none := range []string{"=2", "=2e", "a=", "=61", "=XX", ".", "a b"} {
		if v, ok := decode(none); ok {
			t.Errorf("%q became %q", none, v)
		}
	}
}

func TestAValueOfOtherSoftwareIsNoRecord(t *testing.T) {
	t.Parallel()
	e := &entry{revision: 7, time: time.UnixMilli(9)}
	id := digest("token")
	for _, none := range []string{
		"", "v1", `v2 {"id":"` + id + `","ttl":1}`, `{"id":"` + id + `","ttl":1}`, `v1 {"id":"` + id[1:] + `","ttl":1}`, `v1 {"id":"` + id + `"}`,
		`v1 {"id":"` + id + `","ttl":1} and more`, `v1 {"kind":"shared","holders":[{"id":"` + id + `","ttl":1}]}`,
	} {
		e.value = none
		if r := recordOf(e); r != (record{}) {
			t.Errorf("%q: %+v", none, r)
		}
	}
	for _, r := range []record{{id, 1000, 0, 5, 6, 8, "a b "}, {id, 60_000, 2, 1, 5, 1, ""}} {
		e.value = valueOf(r)
		if back := recordOf(e); back != r {
			t.Errorf("%+v became %+v", r, back)
		}
	}
	e.value = valueOf(record{ID: id, TTL: 1000})
	if r := recordOf(e); r.Order != 7 || r.Since != 9 || r.Ends != 1009 {
		t.Errorf("%+v has not the revision that made it", r)
	}
}

func TestWhoFreesANameOrLeavesTheQueueTellsThoseWhoWaitForIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	told, err := s.conn.SubscribeSync("holdfast.locks.>")
	noError(t, err)
	owner, waiter := minute("na.me", "owner"), minute("na.me", "waiter")
	got := func(c driver.Claim) { _, err := s.Acquire(t.Context(), c); noError(t, err) }
	for _, step := range []struct {
		what, want string
		do         func()
	}{
		{"a release", lockFreed, func() { got(owner); noError(t, s.Release(t.Context(), owner)) }},
		{"an eviction", lockFreed, func() {
			got(owner)
			noError(t, s.Evict(t.Context(), owner.Name, handle(digest(owner.Token))))
		}},
		{"an entry that leaves", digest("waiter"), func() { got(owner); s.queues(t, waiter); _ = s.Release(t.Context(), waiter) }},
		{"a release after that", lockFreed, func() { s.queues(t, waiter); noError(t, s.Release(t.Context(), owner)) }},
		{"a grant", digest("waiter"), func() { got(waiter) }},
		{"a release of that", lockFreed, func() { noError(t, s.Release(t.Context(), waiter)) }},
		{"the last one of several readers", lockFreed, func() {
			for _, token := range []string{"one", "two"} { // the first tells nobody: a writer would not get the name
				got(reader("na.me", token))
			}
			noError(t, s.Release(t.Context(), reader("na.me", "one")))
			noError(t, s.Release(t.Context(), reader("na.me", "two")))
		}},
		{"a permit", lockFreed, func() {
			got(permit("na.me", "one"))
			got(permit("na.me", "two"))
			noError(t, s.Release(t.Context(), permit("na.me", "one")))
		}},
		{"the last permit", lockFreed, func() { noError(t, s.Release(t.Context(), permit("na.me", "two"))) }},
		{"the end of what was left, by an operator", lockFreed, func() {
			c := handingOff("na.me", "left")
			got(c)
			noError(t, s.Release(t.Context(), c)) // the name stays taken
			noError(t, s.Evict(t.Context(), c.Name, handle(digest(c.Handoff))))
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
	noError(t, s.conn.Flush())
	if more, _, err := told.Pending(); err != nil || more > 0 {
		t.Errorf("%d more, %v", more, err)
	}
}
