package natslock

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

func reader(name, token string) driver.Claim {
	c := minute(name, token)
	c.Limit = driver.Readers
	return c
}

func permit(name, token string) driver.Claim {
	c := minute(name, token)
	c.Limit = 2
	return c
}

const hashed = "handoff-0000000000001"

// handingOff is a claim that leaves its name for a hand-off, and claims what is left for it.
func handingOff(name, token string) driver.Claim {
	c := minute(name, token)
	c.Handoff, c.Keep = hashed, time.Minute
	return c
}

func granted(t *testing.T, s *Store, c driver.Claim) driver.Grant {
	t.Helper()
	g, err := s.Acquire(t.Context(), c)
	ok(t, err)
	return g
}

// lasts is the TTL of a lock's key.
func lasts(t *testing.T, s *Store, name string) time.Duration {
	t.Helper()
	stream, err := s.js.Stream(t.Context(), s.stream())
	ok(t, err)
	m, err := stream.GetLastMsgForSubject(t.Context(), s.subject(lockKey(name)))
	ok(t, err)
	d, err := time.ParseDuration(m.Header.Get(jetstream.MsgTTLHeader))
	ok(t, err)
	return d
}

// A server that deletes a key whose TTL is over deletes what was written meanwhile, too.
func TestNobodyJoinsALockThatIsNearlyOver(t *testing.T) {
	t.Parallel()
	ends := time.UnixMilli(1_000_000)
	for kind, c := range map[inspect.HoldKind]driver.Claim{
		inspect.HoldShared: reader("name", "token"), inspect.HoldLimited: permit("name", "token"), inspect.HoldHandoff: handingOff("name", "token"),
	} {
		now := &state{lock: &entry{}, is: lock{kind, []record{{ID: digest(hashed), TTL: 1000, Ends: ends.UnixMilli(), Limit: c.Limit}}}}
		for left, want := range map[time.Duration]bool{sweep: true, sweep - 1: false, 0: false, -time.Minute: false} {
			now.at = ends.Add(-left)
			if now.admits(c) != want {
				t.Errorf("%s: admitted %s before the end: %t", kind, left, !want)
			}
			if held := now.held(c); !want && (held.Remaining < sweep || held.Remaining > time.Second) {
				t.Errorf("%s: %+v", kind, held)
			}
		}
		now.at, now.asked = ends.Add(-time.Second), time.Now()
		ctx, cancel := now.inTime(t.Context())
		if deadline, ok := ctx.Deadline(); !ok || deadline.Sub(now.asked) > 990*time.Millisecond {
			t.Errorf("%s: an answer at %s counts, a second before the end", kind, deadline.Sub(now.asked))
		}
		cancel()
	}
}

func TestAnAnswerAfterTheEndOfTheOthersProvesNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := reader("name", "joins")
	granted(t, s, reader("name", "one"))
	now := s.seen(t, c)
	js, err := jetstream.NewWithAPIPrefix(s.conn, "SILENT")
	ok(t, err)
	silent, err := s.conn.Subscribe("SILENT.>", func(*nats.Msg) {})
	ok(t, err)
	t.Cleanup(func() { _ = silent.Unsubscribe() })
	now.is.Holders[0].Ends = now.at.Add(sweep).UnixMilli()
	if _, err = New(js, s.bucket).take(t.Context(), c, now); !errors.Is(err, errTooSlow) {
		t.Error(err)
	}
}

func TestTheKeyLastsAsLongAsItsLastHolder(t *testing.T) {
	t.Parallel()
	s := open(t)
	short, long, fraction := reader("name", "short"), reader("name", "long"), minute("name", "token")
	long.TTL, fraction.TTL = time.Hour, 1001*time.Millisecond
	for _, step := range []struct {
		what       string
		do         func() error
		least, max time.Duration
	}{
		{"no whole seconds", func() error { granted(t, s, fraction); return nil }, fraction.TTL, fraction.TTL},
		{"its renewal", func() error { return s.Renew(t.Context(), []driver.Claim{fraction})[0] }, fraction.TTL, fraction.TTL},
		{"a first reader", func() error {
			ok(t, s.Release(t.Context(), fraction))
			granted(t, s, short)
			return nil
		}, time.Minute, time.Minute},
		{"a longer one", func() error { granted(t, s, long); return nil }, time.Hour, time.Hour},
		{"a renewal of the first", func() error { return s.Renew(t.Context(), []driver.Claim{short})[0] }, time.Hour - 30*time.Second, time.Hour},
		{"a renewal for longer", func() error {
			longer := short
			longer.TTL = 2 * time.Hour
			return s.Renew(t.Context(), []driver.Claim{longer})[0]
		}, 2 * time.Hour, 2 * time.Hour},
		{"one for as long as before", func() error { return s.Renew(t.Context(), []driver.Claim{short})[0] }, time.Hour - 30*time.Second, time.Hour},
		{"the end of the longer one", func() error { return s.Release(t.Context(), long) }, 30 * time.Second, time.Minute},
		{"an eviction, some time after the last write", func() error {
			granted(t, s, long)
			eventually(t, "time goes on, and nobody renews", func() bool {
				now := s.seen(t, short)
				return now.mine(short).left(now.at) <= time.Minute-2*time.Second
			})
			return s.Evict(t.Context(), "name", handle(digest(long.Token)))
		}, 0, time.Minute - 2*time.Second},
	} {
		ok(t, step.do())
		if got := lasts(t, s, "name"); got < step.least || got > step.max+time.Second { // ends are rounded up to ms, and TTLs to seconds
			t.Errorf("after %s it lasts %s", step.what, got)
		}
	}
}

func TestWhoHasEndedGoesWithTheNextWrite(t *testing.T) {
	t.Parallel()
	s := open(t)
	one, two := reader("name", "one"), reader("name", "two")
	for what, write := range map[string]func() error{
		"a claim":   func() error { _, err := s.Acquire(t.Context(), two); return err },
		"a renewal": func() error { return s.Renew(t.Context(), []driver.Claim{one})[0] },
		"a release": func() error { granted(t, s, two); return s.Release(t.Context(), two) },
	} {
		granted(t, s, one)
		now := s.seen(t, one)
		dead := record{ID: digest("dead"), TTL: 1000, Order: 1, Ends: now.at.Add(-time.Second).UnixMilli()}
		_, err := s.set(t.Context(), "name", now, now.is.with(dead))
		ok(t, err)
		ok(t, write())
		if now = s.seen(t, one); !now.owned(one) || len(now.is.without(dead.ID).Holders) != len(now.is.Holders) {
			t.Errorf("after %s: %s", what, valueOf(now.is))
		}
		_ = s.Release(t.Context(), two)
		ok(t, s.Release(t.Context(), one))
	}
}

func TestRenewalsOfOneLockAreOneWrite(t *testing.T) {
	t.Parallel()
	s := open(t)
	var claims []driver.Claim
	for i := range 20 {
		claims = append(claims, reader("name", fmt.Sprint(i)))
		granted(t, s, claims[i])
	}
	before := s.seen(t, claims[0]).lock.revision
	gone, verified := reader("name", "gone"), claims[7]
	verified.TTL = 0
	for i, err := range s.Renew(t.Context(), append(claims, gone, verified)) {
		if i == len(claims) != errors.Is(err, driver.ErrNotOwner) || i != len(claims) && err != nil {
			t.Errorf("claim %d: %v", i, err)
		}
	}
	if after := s.seen(t, claims[0]).lock.revision; after != before+1 {
		t.Errorf("%d writes", after-before)
	}
}

func TestANameHasRoomForSoManyHolders(t *testing.T) {
	t.Parallel()
	many := permit("name", "token")
	many.Limit = maxHolders + 1
	for kind, c := range map[inspect.HoldKind]driver.Claim{inspect.HoldShared: reader("name", "token"), inspect.HoldLimited: many} {
		now := &state{lock: &entry{}, is: lock{Kind: kind}}
		for i := range maxHolders {
			now.is.Holders = append(now.is.Holders, record{ID: digest(fmt.Sprint(i)), TTL: 1000, Ends: 1000, Limit: c.Limit})
			if i < maxHolders-1 && !now.admits(c) {
				t.Fatalf("%s: %d are too many", kind, i+1)
			}
		}
		if held := now.held(c); now.admits(c) || held.Limit != min(max(0, c.Limit), maxHolders) {
			t.Errorf("%s: more than that, or told of %d", kind, held.Limit)
		}
	}
}

func TestAValueOfOtherSoftwareIsForeign(t *testing.T) {
	t.Parallel()
	id := digest("token")
	e := &entry{revision: 7, time: time.UnixMilli(9)}
	says := func(kind string, holders ...string) string {
		return `v1 {"kind":"` + kind + `","holders":[` + strings.Join(holders, ",") + `]}`
	}
	short, whole := `{"id":"`+id+`","ttl":1000}`, `{"id":"`+id+`","ttl":1000,"limit":2,"order":5,"since":6,"ends":8,"label":"a b"}`
	first, second := record{id, 1000, 0, 7, 9, 1009, ""}, record{id, 1000, 2, 5, 6, 8, "a b"}
	for value, want := range map[string]lock{
		says("exclusive", whole):     {inspect.HoldExclusive, []record{second}},
		says("shared", short, whole): {inspect.HoldShared, []record{first, second}},
		says("limited", whole):       {inspect.HoldLimited, []record{second}},
		says("kept", short):          {inspect.HoldKept, []record{first}},
		says("handed off", short):    {inspect.HoldHandoff, []record{first}},
	} {
		e.value = value
		if got := lockOf(e); !reflect.DeepEqual(got, want) || !reflect.DeepEqual(lockOf(&entry{value: valueOf(got)}), want) {
			t.Errorf("%s: %s %+v, which becomes %s", value, got.Kind, got.Holders, valueOf(got))
		}
	}
	for _, e.value = range []string{
		says("new", short), says("shared", `{"id":"short","ttl":1000}`), says("shared", `{"id":"`+id+`"}`), says("kept"),
		says("exclusive", short, short), "v1 " + short, says("shared", short) + " and more",
		strings.Replace(says("shared", short), "v1", "v2", 1), strings.TrimPrefix(says("shared", whole), "v1 "), "", "v1",
	} {
		if got := lockOf(e); got.Kind != inspect.HoldForeign || got.Holders != nil {
			t.Errorf("%s: %s %+v", e.value, got.Kind, got.Holders)
		}
	}
	for _, e.value = range []string{
		"", "v1", "v2 " + short, short, `v1 {"id":"short","ttl":1}`, `v1 {"id":"` + id + `"}`, "v1 " + short + " and more", says("shared", short),
	} {
		if r := recordOf(e); r != (record{}) {
			t.Errorf("an entry %q: %+v", e.value, r)
		}
	}
}

// Another slot may have been taken meanwhile, and an entry that has left must not come back.
func TestAnEntryIsWrittenAsItWasRead(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := minute("name", "leaves")
	granted(t, s, minute("name", "owner"))
	s.queues(t, c)
	now := s.seen(t, c)
	ok(t, s.leave(t.Context(), c, now))
	err := s.sit(t.Context(), c, now.own.slot, now.own.entry.revision, now.own.record)
	if !errors.Is(err, errMoved) || s.seen(t, c).own != nil {
		t.Errorf("it is back: %v", err)
	}
}
