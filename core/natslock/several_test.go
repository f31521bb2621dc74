package natslock

import (
	"errors"
	"fmt"
	"reflect"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
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
	noError(t, err)
	return g
}

// lasts is the TTL of a lock's key.
func lasts(t *testing.T, s *Store, name string) time.Duration {
	t.Helper()
	stream, err := s.js.Stream(t.Context(), s.stream())
	noError(t, err)
	m, err := stream.GetLastMsgForSubject(t.Context(), s.subject(lockKey(name)))
	noError(t, err)
	d, err := time.ParseDuration(m.Header.Get(jetstream.MsgTTLHeader))
	noError(t, err)
	return d
}

// Between a look and the write that follows from it others come and go.
func TestWhoComesBetweenALookAndItsWriteIsRespected(t *testing.T) {
	t.Parallel()
	s := open(t)
	mark := func(c driver.Claim, now *state) error { return s.mark(t.Context(), c, now) }
	sit := func(c driver.Claim, now *state) error {
		return s.sit(t.Context(), c, now.own.slot, now.own.entry.revision, now.own.record)
	}
	got := func(kind func(name, token string) driver.Claim, token string) func(n string) {
		return func(n string) { granted(t, s, kind(n, token)) }
	}
	release := func(c driver.Claim) { noError(t, s.Release(t.Context(), c)) }
	next := func(kind func(name, token string) driver.Claim) func(n string) { // it ends, and somebody else begins
		return func(n string) { release(kind(n, "late")); granted(t, s, kind(n, "next")) }
	}
	for what, late := range map[string]struct {
		claim             func(name, token string) driver.Claim
		before, meanwhile func(n string)
		write             func(c driver.Claim, now *state) error
	}{
		"a marker after another's grant": {minute, got(minute, "late"), next(minute), mark},
		"an entry after it has left": {
			minute, func(n string) { granted(t, s, minute(n, "other")); s.queues(t, minute(n, "late")) },
			func(n string) { c := minute(n, "late"); noError(t, s.leave(t.Context(), c, s.seen(t, c))) }, sit,
		},
	} {
		c := late.claim(fmt.Sprintf("%x", what), "late")
		if c.Handoff == "" {
			c.Dedup, c.Scope = time.Hour, "scope"
		}
		late.before(c.Name)
		now := s.seen(t, c)
		late.meanwhile(c.Name)
		stands := s.seen(t, c)
		if err := late.write(c, now); !errors.Is(err, errMoved) {
			t.Errorf("%s: %v", what, err)
		}
		after := s.seen(t, c)
		if valueOf(after.is) != valueOf(stands.is) || after.lock.revision != stands.lock.revision || after.done.there() || after.own != nil {
			t.Errorf("%s: %+v after %+v", what, after, stands)
		}
	}
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
	noError(t, err)
	silent, err := s.conn.Subscribe("SILENT.>", func(*nats.Msg) {})
	noError(t, err)
	t.Cleanup(func() { _ = silent.Unsubscribe() })
	now.is.Holders[0].Ends = now.at.Add(sweep).UnixMilli()
	if _, err = New(js, s.bucket).take(t.Context(), c, now); !errors.Is(err, errTooSlow) {
		t.Error(err)
	}
}

func TestAHolderEndsByTheServersClock(t *testing.T) {
	t.Parallel()
	s := open(t)
	one, two := reader("name", "one"), reader("name", "two")
	two.TTL = time.Hour
	ends := func(c driver.Claim) int64 { return s.seen(t, c).mine(c).Ends }
	granted(t, s, one)
	first := s.seen(t, one)
	if want := first.lock.time.Add(one.TTL); first.is.Holders[0].left(want) < 0 || first.is.Holders[0].left(want) >= time.Millisecond {
		t.Errorf("ends at %d, not at %s", first.is.Holders[0].Ends, want)
	}
	granted(t, s, two)
	noError(t, s.Renew(t.Context(), []driver.Claim{two})[0])
	if now := ends(one); now != first.is.Holders[0].Ends {
		t.Errorf("another's renewal makes it end at %d, not at %d", now, first.is.Holders[0].Ends)
	}
	noError(t, s.Renew(t.Context(), []driver.Claim{one})[0])
	if now := ends(one); now <= first.is.Holders[0].Ends {
		t.Errorf("after its own renewal it ends at %d", now)
	}
}

func TestTheKeyLastsAsLongAsItsLastHolder(t *testing.T) {
	t.Parallel()
	s := open(t)
	short, long := reader("name", "short"), reader("name", "long")
	long.TTL = time.Hour
	for _, step := range []struct {
		what       string
		do         func() error
		least, max time.Duration
	}{
		{"a first reader", func() error { granted(t, s, short); return nil }, time.Minute, time.Minute},
		{"a longer one", func() error { granted(t, s, long); return nil }, time.Hour, time.Hour},
		{"a renewal of the first", func() error { return s.Renew(t.Context(), []driver.Claim{short})[0] }, time.Hour - 30*time.Second, time.Hour},
		{"a renewal for longer", func() error {
			longer := short
			longer.TTL = 2 * time.Hour
			return s.Renew(t.Context(), []driver.Claim{longer})[0]
		}, 2 * time.Hour, 2 * time.Hour},
		{"one for as long as before", func() error { return s.Renew(t.Context(), []driver.Claim{short})[0] }, time.Hour - 30*time.Second, time.Hour},
		{"the end of the longer one", func() error { return s.Release(t.Context(), long) }, 30 * time.Second, time.Minute},
	} {
		noError(t, step.do())
		if got := lasts(t, s, "name"); got < step.least || got > step.max+time.Second { // ends are rounded up to ms, and TTLs to seconds
			t.Errorf("after %s it lasts %s", step.what, got)
		}
	}
}

// A marker does not change the lock. So a claim that joins may have looked before it.
func TestAReaderThatJoinsAfterTheMarkerIsADuplicate(t *testing.T) {
	t.Parallel()
	s := open(t)
	r, far := behind(t, s)
	one, late := reader("name", "one"), reader("name", "late")
	one.Dedup, one.Label, late.Dedup = time.Hour, "who", time.Hour
	granted(t, s, one)
	_ = far.seen(t, late) // the question is known now
	r.freeze(t, s)
	noError(t, s.mark(t.Context(), one, s.seen(t, one)))
	_, err := far.Acquire(t.Context(), late)
	if done, ok := errors.AsType[*driver.Duplicate](err); !ok || done.Label != "who" {
		t.Error(err)
	}
	if s.seen(t, late).owned(late) || !s.seen(t, one).owned(one) {
		t.Error("it has the name, or the other one has lost it")
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
		noError(t, err)
		noError(t, write())
		if now = s.seen(t, one); !now.owned(one) || len(now.is.without(dead.ID).Holders) != len(now.is.Holders) {
			t.Errorf("after %s: %s", what, valueOf(now.is))
		}
		_ = s.Release(t.Context(), two)
		noError(t, s.Release(t.Context(), one))
	}
}

// What is left of several holders is measured by the server's time, not from when the lock was last written.
func TestTheEvictionOfAReaderKeepsANameNoLonger(t *testing.T) {
	t.Parallel()
	const life, since = 10 * time.Second, 2 * time.Second
	s := open(t)
	one, two := reader("name", "one"), reader("name", "two")
	one.TTL, two.TTL = life, life
	granted(t, s, one)
	granted(t, s, two)
	backendtest.Eventually(t, "time goes on, and nobody renews", func() bool {
		info, err := s.Inspect(t.Context(), "name")
		return err == nil && len(info.Holders) == 2 && info.Holders[0].Remaining <= life-since && info.Holders[1].Remaining <= life-since
	})
	noError(t, s.Evict(t.Context(), "name", handle(digest(two.Token))))
	if left := lasts(t, s, "name"); left > life-since+time.Second { // TTLs are rounded up
		t.Errorf("it lasts %s more", left)
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

func TestWhatIsNoLockIsForeign(t *testing.T) {
	t.Parallel()
	id := digest("token")
	e := &entry{revision: 7, time: time.UnixMilli(9)}
	for value, want := range map[string]lock{
		`v1 {"kind":"exclusive","holders":[{"id":"` + id + `","ttl":1000,"label":"a b"}]}`: {inspect.HoldExclusive, []record{{id, 1000, 0, 7, 9, 1009, "a b"}}},
		`v1 {"kind":"shared","holders":[{"id":"` + id + `","ttl":1000},{"id":"` + id + `","ttl":1000,"order":5,"since":6,"ends":8,"label":"a b"}]}`: {
			inspect.HoldShared, []record{{id, 1000, 0, 7, 9, 1009, ""}, {id, 1000, 0, 5, 6, 8, "a b"}},
		},
		`v1 {"kind":"limited","holders":[{"id":"` + id + `","ttl":1000,"limit":2}]}`:                        {inspect.HoldLimited, []record{{id, 1000, 2, 7, 9, 1009, ""}}},
		`v1 {"kind":"kept","holders":[{"id":"` + id + `","ttl":1000}]}`:                                     {inspect.HoldKept, []record{{id, 1000, 0, 7, 9, 1009, ""}}},
		`v1 {"kind":"handed off","holders":[{"id":"` + id + `","ttl":1000,"order":5}]}`:                     {inspect.HoldHandoff, []record{{id, 1000, 0, 5, 0, 1009, ""}}},
		`v1 {"kind":"new","holders":[{"id":"` + id + `","ttl":1000}]}`:                                      {Kind: inspect.HoldForeign},
		`v1 {"kind":"shared","holders":[{"id":"short","ttl":1000}]}`:                                        {Kind: inspect.HoldForeign},
		`v1 {"kind":"shared","holders":[{"id":"` + id + `"}]}`:                                              {Kind: inspect.HoldForeign},
		`v1 {"kind":"kept","holders":[]}`:                                                                   {Kind: inspect.HoldForeign},
		`v1 {"kind":"exclusive","holders":[{"id":"` + id + `","ttl":1000},{"id":"` + id + `","ttl":1000}]}`: {Kind: inspect.HoldForeign},
		`v1 {"id":"` + id + `","ttl":1000}`:                                                                 {Kind: inspect.HoldForeign},
		`v1 {"kind":"shared","holders":[{"id":"` + id + `","ttl":1000}]} and more`:                          {Kind: inspect.HoldForeign},
		`v2 {"kind":"shared","holders":[{"id":"` + id + `","ttl":1000}]}`:                                   {Kind: inspect.HoldForeign},
		`{"kind":"shared","holders":[{"id":"` + id + `","ttl":1000,"order":5,"ends":8}]}`:                   {Kind: inspect.HoldForeign},
	} {
		e.value = value
		got := lockOf(e)
		if !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s %+v", value, got.Kind, got.Holders)
		}
		if got.Kind != inspect.HoldForeign {
			if again := lockOf(&entry{value: valueOf(got)}); again.Kind != got.Kind || again.Holders[0].Order != got.Holders[0].Order {
				t.Errorf("%s became %s", value, valueOf(got))
			}
		}
	}
}

// A name that a release has left taken comes free by the server's own clock, as dead holders do.
func TestAKeptNameLastsAsLongAsAskedAndItsEndIsExact(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := minute("name", "token")
	granted(t, s, c)
	c.Keep = 1500 * time.Millisecond
	noError(t, s.Release(t.Context(), c))
	if got := lasts(t, s, "name"); got != 2*time.Second {
		t.Errorf("it lasts %s", got)
	}
	if err := s.Evict(t.Context(), "name", handle(digest(c.Token))); err == nil {
		t.Error("the handle of its owner frees it")
	}
	remaining := c.Keep
	backendtest.Eventually(t, "the name comes free", func() bool {
		_, err := s.Acquire(t.Context(), minute("name", "next"))
		if held, ok := errors.AsType[*driver.Held](err); ok {
			if !held.Exact || held.Remaining > remaining {
				t.Errorf("%+v after %s", held, remaining)
			}
			remaining = max(held.Remaining, sweep)
		}
		return err == nil
	})
	if remaining != sweep {
		t.Errorf("%s were left when it came free", remaining)
	}
}
