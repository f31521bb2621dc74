package zklock

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// The client keeps every watch that it was asked for until that fires, which may take as long
// as a lease lasts.
func TestThoseWhoWaitForTheSameOneShareAWatch(t *testing.T) {
	t.Parallel()
	s := open(t)
	create := func() string {
		path, err := s.conn.Create("/x-", nil, zk.FlagEphemeralSequential, s.acl)
		ok(t, err)
		return path
	}
	call := &call{Store: s, ctx: t.Context()}
	watch := func(path string) <-chan zk.Event {
		fires, err := call.watch(path, func() (fires <-chan zk.Event, err error) { _, _, fires, err = s.conn.GetW(path); return fires, err })
		ok(t, err)
		return fires
	}
	first, second := create(), create()
	fires := watch(first)
	if watch(first) != fires {
		t.Error("a second watch")
	}
	ok(t, s.conn.Delete(first, -1))
	<-fires
	<-fires // for whoever waits
	watch(second)
	if len(s.watches) != 1 {
		t.Errorf("%d watches are remembered", len(s.watches))
	}
}

// Between the look at the queue and the look at what was left, somebody may take it over.
func TestWhoFindsAHandoffGoneLooksWhoHasTakenItOver(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := claim("name", "giver")
	take(t, s, c)
	c.Handoff, c.Keep = "handoff", time.Minute
	ok(t, s.Release(t.Context(), c))
	call := &call{Store: s, ctx: t.Context()}
	queue, err := call.queue("name")
	if err != nil || len(queue) != 1 || !isLeft(queue[0]) {
		t.Fatalf("%q, %v", queue, err)
	}
	other := claim("name", "other")
	if held, err := call.held(other, queue); held == nil || err != nil {
		t.Errorf("before that: %+v, %v", held, err)
	}
	taker := claim("name", "taker")
	taker.Handoff = c.Handoff
	take(t, s, taker)
	if held, err := call.held(other, queue); held != nil || err != nil {
		t.Errorf("by what was there before: %+v, %v", held, err)
	}
	if _, err := s.Acquire(t.Context(), other); err == nil {
		t.Error("two owners")
	}
}

// A znode that is created for a free name says already who owns it. But somebody may have come before it meanwhile, had the name
// and left, before the queue is looked at again.
func TestAFenceIsLaterThanThatOfWhoCameBetween(t *testing.T) {
	t.Parallel()
	s := open(t)
	for _, limit := range []int{0, driver.Readers} {
		c := claim(fmt.Sprint("name", limit), "token")
		c.Limit = limit
		call := &call{Store: s, ctx: t.Context()}
		ok(t, call.makeDir(c.Name))
		before, err := s.conn.Create(s.dir(c.Name)+"/"+exclusive+digest("other")+"-", nil, zk.FlagEphemeralSequential, s.acl)
		ok(t, err)
		n, err := call.take(c.Name, digest(c.Token), false)
		ok(t, err)
		ok(t, call.create(n, c, false))
		other, err := s.conn.Set(before, []byte(record(driver.Claim{Token: "other"})), -1)
		ok(t, err)
		ok(t, s.conn.Delete(before, -1))
		_, err = call.lookUp(n)
		ok(t, err)
		if g, err := call.grant(n, c, true); err != nil || g.Fence <= uint64(other.Mzxid) {
			t.Errorf("fence %d after %d, %v", g.Fence, other.Mzxid, err)
		}
		call.leave(n)
		ok(t, s.Release(t.Context(), c))
	}
}

// Those that have no number come first, whatever the end of a digest looks like.
func TestZnodesAreInTheOrderOfTheirCreation(t *testing.T) {
	t.Parallel()
	for _, want := range [][]string{
		{"write-ff-0000000001", "write-00-0000000002", "write-aa-0000000010"},
		{"_c_aa-lock-0000000001", "write-aa-0000000002"},
		{"write-ff-2147483646", "write-ee-2147483647", "write-aa--2147483648", "write-00--2147483647"},
		{"write-aa--000000002", "write-aa--000000001", "write-aa-0000000000", "write-aa-0000000001"},
		{"a", "b", "leases", "write-aa-0000000000"},
		{left + "00000000001234567890-", "write-aa--000000001", "write-aa-0000000000"},
		{taken + "00000000001234567890-", "write-aa--000000001", "write-aa-0000000000"},
	} {
		got := slices.Clone(want)
		slices.Reverse(got)
		slices.SortFunc(got, before)
		if !slices.Equal(got, want) {
			t.Errorf("%q", got)
		}
	}
}

// A release wakes only those whom it lets in.
func TestAWriterWaitsForTheOneBeforeItAndAReaderForTheLastThatIsNone(t *testing.T) {
	t.Parallel()
	const r1, r2, w3, r4, w5, r6 = "read-a-0000000001", "read-b-0000000002", "write-c-0000000003",
		"read-d-0000000004", "write-e-0000000005", "read-f-0000000006"
	queue := []string{r1, r2, w3, r4, w5, r6}
	for at, want := range []string{"", "", r2, w3, r4, w5} {
		if got := blocker(queue, at); got != want {
			t.Errorf("%s waits for %q, not for %q", queue[at], got, want)
		}
	}
	const foreign = "_c_x-__READ__0000000001"
	if got := blocker([]string{foreign, r2}, 1); got != foreign {
		t.Errorf("a reader behind other software waits for %q", got)
	}
}

func TestNothingIsTriedForEverOnAConnectionThatWasClosed(t *testing.T) {
	t.Parallel()
	s := open(t)
	c := claim("name", "token")
	c.TTL = time.Second
	take(t, s, c)
	s.conn.Close()
	eventually(t, "the node is no longer to be deleted", func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		return len(s.nodes) == 0
	})
}

// A new leader can know a session that its client has given up, and gives it its whole time again.
func TestAZnodeOfAnEarlierSessionOrOneThatIsBeingDeletedIsNotRenewed(t *testing.T) {
	t.Parallel()
	s := open(t)
	for what, change := range map[string]func(n *node){
		"as if the client had another session now": func(n *node) { n.session-- },
		"being deleted": func(n *node) { n.retry() },
	} {
		c := claim(what, "token")
		take(t, s, c)
		verified := c
		verified.TTL = 0
		for _, c := range []driver.Claim{verified, c} {
			ok(t, s.Renew(t.Context(), []driver.Claim{c})[0])
		}
		s.set(func() { change(s.nodes[key{c.Name, digest(c.Token)}]) })
		for _, c := range []driver.Claim{verified, c} {
			if err := s.Renew(t.Context(), []driver.Claim{c})[0]; !errors.Is(err, driver.ErrNotOwner) {
				t.Errorf("%s, TTL %v: %v", what, c.TTL, err)
			}
		}
		backendtest.Within(t, c.TTL/2, "it is deleted, long before its time is over", func() bool {
			_, err := s.Acquire(t.Context(), claim(what, "next"))
			return err == nil
		})
	}
}
