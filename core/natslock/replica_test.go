package natslock

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/holdfast-go/holdfast/core/driver"
)

// replica answers a read of a Store as a replica does that has heard of nothing for a while. It passes on everything
// else.
type replica struct {
	conn *nats.Conn

	mu    sync.Mutex // protects what follows
	asked [][]byte
	old   map[string][]*nats.Msg // answers by questions; each is given once
}

// behind returns a replica of the bucket of s, and a Store that reads from it.
func behind(t *testing.T, s *Store) (*replica, *Store) {
	t.Helper()
	r := &replica{conn: s.conn}
	sub, err := s.conn.Subscribe("TEST.>", r.pass)
	ok(t, err)
	t.Cleanup(func() { _ = sub.Unsubscribe() })
	js, err := jetstream.NewWithAPIPrefix(s.conn, "TEST")
	ok(t, err)
	far := New(js, s.bucket)
	ok(t, far.settle(t.Context()))
	far.copies.Store(3)
	return r, far
}

func (r *replica) pass(m *nats.Msg) {
	subject := strings.TrimPrefix(m.Subject, "TEST.")
	if !strings.HasPrefix(subject, "$KV.") {
		subject = jetstream.DefaultAPIPrefix + subject
	}
	if strings.Contains(subject, ".DIRECT.") {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.asked = append(r.asked, m.Data)
		if answers, frozen := r.old[string(m.Data)]; frozen {
			delete(r.old, string(m.Data))
			for _, answer := range answers {
				_ = r.conn.PublishMsg(&nats.Msg{Subject: m.Reply, Header: answer.Header, Data: answer.Data})
			}
			return
		}
	}
	_ = r.conn.PublishMsg(&nats.Msg{Subject: subject, Reply: m.Reply, Header: m.Header, Data: m.Data})
}

// freeze has it answer every question that was asked so far once as it would answer now.
func (r *replica) freeze(t *testing.T, s *Store) {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.old = make(map[string][]*nats.Msg)
	for _, question := range r.asked {
		inbox := s.conn.NewInbox()
		answers, err := s.conn.SubscribeSync(inbox)
		ok(t, err)
		ok(t, s.conn.PublishRequest(s.api()+"DIRECT.GET."+s.stream(), inbox, question))
		var all []*nats.Msg
		for status := ""; status == ""; {
			m, err := answers.NextMsgWithContext(t.Context())
			ok(t, err)
			all = append(all, m)
			status = m.Header.Get("Status")
		}
		ok(t, answers.Unsubscribe())
		r.old[string(question)] = all
	}
}

func TestWhatAReplicaHasNotHeardOfIsNotTold(t *testing.T) {
	t.Parallel()
	near := open(t)
	got := func(c driver.Claim) { granted(t, near, c) }
	gone := func(c driver.Claim) { ok(t, near.Release(t.Context(), c)) }
	mine, theirs := minute("name", "mine"), minute("name", "theirs")
	reads, others := reader("name", "mine"), reader("name", "theirs")
	verify := mine
	verify.TTL = 0
	once := func(c driver.Claim) driver.Claim { c.Dedup, c.Scope = time.Hour, "scope"; return c }
	again, finished := once(mine), once(theirs)
	isDone := func(far *Store, c driver.Claim) error {
		g, err := far.Acquire(t.Context(), c)
		if _, done := errors.AsType[*driver.Duplicate](err); !done || near.seen(t, c).owned(c) {
			return fmt.Errorf("granted: %+v, %w", g, err)
		}
		return nil
	}
	stream, err := near.js.Stream(t.Context(), near.stream())
	ok(t, err)
	forgotten := func() {
		ok(t, stream.Purge(t.Context(), jetstream.WithPurgeSubject(near.subject(lockKey("name")))))
	} // as after a minute
	r, far := behind(t, near)
	_, _ = far.look(t.Context(), mine, false) // the questions are known now
	_, _ = far.look(t.Context(), again, false)
	_, _ = far.locks(t.Context(), map[string]*renewal{lockKey(mine.Name): {}})
	for what, late := range map[string]struct {
		before, meanwhile func()
		call              func(far *Store) error
	}{
		"a renewal after the grant": {func() {}, func() { got(mine) },
			func(far *Store) error { return far.Renew(t.Context(), []driver.Claim{mine})[0] }},
		"a verification after the grant": {func() {}, func() { got(mine) },
			func(far *Store) error { return far.Renew(t.Context(), []driver.Claim{verify})[0] }},
		"a release after the grant": {func() {}, func() { got(mine) },
			func(far *Store) error { return far.Release(t.Context(), mine) }},
		"a claim after the release": {func() { got(theirs) }, func() { gone(theirs) },
			func(far *Store) error { _, err := far.Acquire(t.Context(), mine); return err }},
		"a claim after another's whole grant": {func() {}, func() { got(theirs); gone(theirs) },
			func(far *Store) error { _, err := far.Acquire(t.Context(), mine); return err }},
		"a reader after a writer": {func() { got(theirs) }, func() { gone(theirs); got(others) },
			func(far *Store) error { _, err := far.Acquire(t.Context(), reads); return err }},
		"a reader beside others that came since": {func() { got(others) }, func() { got(reader("name", "third")) },
			func(far *Store) error { _, err := far.Acquire(t.Context(), reads); return err }},
		"a reader's renewal beside others": {func() { got(others) }, func() { got(reads) },
			func(far *Store) error { return errors.Join(far.Renew(t.Context(), []driver.Claim{reads, others})...) }},
		"a reader's release beside others": {func() { got(others) }, func() { got(reads) },
			func(far *Store) error { return far.Release(t.Context(), reads) }},
		"a claim whose work was finished a minute ago": {forgotten, func() { got(finished); gone(finished); forgotten() },
			func(far *Store) error { return isDone(far, again) }},
		"a reader that joins after the marker, which does not change the lock": {func() { got(others) },
			func() { ok(t, near.mark(t.Context(), once(others), near.seen(t, others))) },
			func(far *Store) error {
				return errors.Join(isDone(far, once(reads)), near.Renew(t.Context(), []driver.Claim{others})[0])
			}},
		"a hand-off after another's grant": {func() { got(theirs) }, func() { gone(handingOff("name", "theirs")) },
			func(far *Store) error { _, err := far.Acquire(t.Context(), handingOff("name", "mine")); return err }},
	} {
		late.before()
		r.freeze(t, near)
		late.meanwhile()
		if err := late.call(far); err != nil {
			t.Errorf("%s: %v", what, err)
		}
		for _, token := range []string{"mine", "theirs", "third"} {
			_, _ = near.Release(t.Context(), reader("name", token)), near.Release(t.Context(), minute("name", token))
		}
		_ = near.Unmark(t.Context(), "name", "scope")
	}
	got(mine)
	ok(t, far.Renew(t.Context(), []driver.Claim{verify})[0])
	r.freeze(t, near)
	gone(mine)
	if err := far.Renew(t.Context(), []driver.Claim{verify})[0]; err == nil {
		t.Error("a lease that has ended is verified")
	}
}
