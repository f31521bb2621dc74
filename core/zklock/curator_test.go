package zklock

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	driver "github.com/holdfast-go/holdfast/core/internal/olddriver"
)

// Faults that Curator's recipes have had, or have. What else there was of that kind:
//
//   - An acquire that is interrupted leaves its znode (CURATOR-79, 315, 335, 462):
//     TestACreationThatNobodyWaitsForIsUndone.
//   - A release during a loss of the connection leaves the znode, and the process can never acquire again (CURATOR-678):
//     TestAReleaseThatFailsIsDoneOnceTheServerIsBack.
//   - A holder whose session has ended believes that it has the lock (CURATOR-206):
//     TestInACutLongerThanTheSessionTheContextEndsBeforeAnotherGetsIn.

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A client that reconnects with a new session may still see the znode of its last one, which is about to go
// (CURATOR-518, 604).
func TestAZnodeOfAnEarlierSessionIsNoGrant(t *testing.T) {
	t.Parallel()
	s := open(t)
	trip := &trip{store: s, ctx: t.Context()}
	must(t, trip.begin())
	earlier, _, err := zk.Connect([]string{s.conn.Server()}, 10*time.Second, zk.WithLogInfo(false))
	must(t, err)
	defer earlier.Close()
	for what, c := range map[string]driver.Claim{
		"exclusive": {Token: "a"}, "shared": {Token: "b", Shared: true}, "limited": {Token: "c", Limit: 2},
	} {
		c.Name, c.TTL = what, 5*time.Second
		must(t, trip.makeDir(c.Name))
		path, err := earlier.Create(s.dir(c.Name)+"/"+seatOf(c)+"-", record(c), zk.FlagEphemeralSequential, s.acl)
		must(t, err)
		n, err := trip.take(c.Name, seatOf(c))
		must(t, err)
		n.doubt = true // its creation was not answered
		trip.leave(n)
		if g, err := s.Acquire(t.Context(), c); err == nil {
			t.Errorf("%s: granted %+v", what, g)
		}
		must(t, earlier.Delete(path, -1)) // as with its session
		_, err = s.Acquire(t.Context(), c)
		must(t, err)
		must(t, s.Release(t.Context(), c))
	}
}

// What a waiter waits for may go between its look and its watch (CURATOR-527).
func TestWhatGoesBetweenALookAndItsWatchIsNotMissed(t *testing.T) {
	t.Parallel()
	s := open(t)
	holder := driver.Claim{Name: "name", Token: "holder", TTL: 5 * time.Second, Limit: 1}
	waiter := driver.Claim{Name: "name", Token: "waiter", TTL: 5 * time.Second}
	trip := &trip{store: s, ctx: t.Context()}
	for _, limit := range []int{1, 2} {
		holders := []driver.Claim{holder, holder}[:limit]
		for i := range holders {
			holders[i].Limit, holders[i].Token = limit, string(rune('a'+i))
			_, err := s.Acquire(t.Context(), holders[i])
			must(t, err)
		}
		waiter.Limit = limit
		n, err := trip.take(waiter.Name, seatOf(waiter))
		must(t, err)
		must(t, trip.stand(n, waiter))
		line, err := trip.line(n)
		must(t, err)
		must(t, s.Release(t.Context(), holders[0]))
		if _, err := trip.watchFor(s.dir("name"), line, len(line)-1); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("limit %d: %v", limit, err)
		}
		_, err = trip.remove(n)
		must(t, err)
		trip.leave(n)
		for _, c := range holders[1:] {
			must(t, s.Release(t.Context(), c))
		}
	}
}

// As etcd's Mutex.Unlock does, see package etcdlock.
func TestAReleaseThatIsSentAgainEndsNoLaterLease(t *testing.T) {
	t.Parallel()
	s := open(t)
	for what, first := range map[string]driver.Claim{"exclusive": {}, "shared": {Shared: true}, "limited": {Limit: 2}} {
		first.Name, first.Token, first.TTL, first.Place = what, "first", 5*time.Second, "place of both"
		second := first
		second.Token = "second"
		for _, c := range []driver.Claim{first, second} {
			must(t, s.Wait(t.Context(), c))
			_, err := s.Acquire(t.Context(), c)
			must(t, err)
			if c == first {
				must(t, s.Release(t.Context(), first)) // whose answer is lost
			}
		}
		if err := s.Release(t.Context(), first); !errors.Is(err, driver.ErrNotOwner) {
			t.Errorf("%s: %v", what, err)
		}
		must(t, s.Renew(t.Context(), []driver.Claim{second})[0])
	}
}
