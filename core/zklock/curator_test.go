package zklock

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// Faults that Curator's recipes have had, or have. What else there was of that kind:
//
//   - An acquire that is interrupted leaves its znode (CURATOR-79, 315, 335, 462):
//     TestACreationThatNobodyWaitsForIsUndone.
//   - A release during a loss of the connection leaves the znode, and the process can never acquire again (CURATOR-678):
//     TestADeletionThatFailsIsTriedAgainUntilItIsDone.
//   - A holder whose session has ended believes that it has the lock (CURATOR-206):
//     TestInACutLongerThanTheSessionTheContextEndsBeforeAnotherGetsIn.

// A client that reconnects with a new session may still see the znode of its last one, which is about to go
// (CURATOR-518, 604).
func TestAZnodeOfAnEarlierSessionIsNoGrant(t *testing.T) {
	t.Parallel()
	s := open(t)
	call := &call{Store: s, ctx: t.Context()}
	backendtest.OK(t, call.begin())
	earlier, _, err := zk.Connect([]string{s.conn.Server()}, 10*time.Second, zk.WithLogInfo(false))
	backendtest.OK(t, err)
	defer earlier.Close()
	for what, c := range map[string]driver.Claim{
		"exclusive": {Token: "a"}, "shared": {Token: "b", Limit: driver.Readers}, "limited": {Token: "c", Limit: 2},
	} {
		c.Name, c.TTL = what, 5*time.Second
		backendtest.OK(t, call.makeDir(c.Name))
		path, err := earlier.Create(s.dir(c.Name)+"/"+entry(c)+"-", []byte(record(c)), zk.FlagEphemeralSequential, s.acl)
		backendtest.OK(t, err)
		n, err := call.take(c.Name, digest(c.Token), true) // its creation was not answered
		backendtest.OK(t, err)
		call.leave(n)
		if g, err := s.Acquire(t.Context(), c); err == nil {
			t.Errorf("%s: granted %+v", what, g)
		}
		backendtest.OK(t, earlier.Delete(path, -1)) // as with its session
		_, err = s.Acquire(t.Context(), c)
		backendtest.OK(t, err)
		backendtest.OK(t, s.Release(t.Context(), c))
	}
}

// What a waiter waits for may go between its look and its watch (CURATOR-527).
func TestWhatGoesBetweenALookAndItsWatchIsNotMissed(t *testing.T) {
	t.Parallel()
	s := open(t)
	holder := driver.Claim{Name: "name", Token: "holder", TTL: 5 * time.Second, Limit: 1}
	waiter := driver.Claim{Name: "name", Token: "waiter", TTL: 5 * time.Second}
	call := &call{Store: s, ctx: t.Context()}
	for _, limit := range []int{1, 2} {
		holders := []driver.Claim{holder, holder}[:limit]
		for i := range holders {
			holders[i].Limit, holders[i].Token = limit, string(rune('a'+i))
			_, err := s.Acquire(t.Context(), holders[i])
			backendtest.OK(t, err)
		}
		waiter.Limit = limit
		n, err := call.take(waiter.Name, digest(waiter.Token), false)
		backendtest.OK(t, err)
		backendtest.OK(t, call.create(n, waiter, true))
		queue, err := call.lookUp(n)
		backendtest.OK(t, err)
		backendtest.OK(t, s.Release(t.Context(), holders[0]))
		if _, err := call.watchFor("name", queue, len(queue)-1); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("limit %d: %v", limit, err)
		}
		_, err = call.remove(n)
		backendtest.OK(t, err)
		call.leave(n)
		for _, c := range holders[1:] {
			backendtest.OK(t, s.Release(t.Context(), c))
		}
	}
}
