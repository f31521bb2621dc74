package zklock

import (
	"errors"
	"fmt"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Faults that Curator's recipes have had, or have. What else there was of that kind:
//
//   - An acquire that is interrupted leaves its znode (CURATOR-79, 315, 335, 462):
//     EachOperationSurvivesAConnectionCutAtEachStep, WhoComesBetweenTheRequestsOfACallIsRespected.
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
	ok(t, call.begin())
	earlier, _ := connect(t, s.conn.Server(), longSession)
	for what, limit := range map[string]int{"exclusive": 0, "shared": driver.Readers, "limited": 2} {
		c := claim(what, "token")
		c.Limit = limit
		ok(t, call.makeDir(c.Name))
		path, err := earlier.Create(s.dir(c.Name)+"/"+entry(c)+"-", []byte(record(c)), zk.FlagEphemeralSequential, s.acl)
		ok(t, err)
		n, err := call.take(c.Name, digest(c.Token), true) // its creation was not answered
		ok(t, err)
		call.leave(n)
		if g, err := s.Acquire(t.Context(), c); err == nil {
			t.Errorf("%s: granted %+v", what, g)
		}
		ok(t, earlier.Delete(path, -1)) // as with its session
		take(t, s, c)
	}
}

// What a waiter waits for may go between its look and its watch (CURATOR-527).
func TestWhatGoesBetweenALookAndItsWatchIsNotMissed(t *testing.T) {
	t.Parallel()
	s := open(t)
	call := &call{Store: s, ctx: t.Context()}
	for limit := range 3 { // for itself, and one of so many
		name := fmt.Sprint("name", limit)
		of := func(token string) driver.Claim {
			c := claim(name, token)
			c.Limit = limit
			return c
		}
		for i := range max(1, limit) {
			take(t, s, of(fmt.Sprint("holder ", i)))
		}
		waiter := of("waiter")
		n, err := call.take(name, digest(waiter.Token), false)
		ok(t, err)
		ok(t, call.create(n, waiter, true))
		queue, err := call.lookUp(n)
		ok(t, err)
		ok(t, s.Release(t.Context(), of("holder 0")))
		if _, err := call.watchFor(name, queue, len(queue)-1); !errors.Is(err, zk.ErrNoNode) {
			t.Errorf("limit %d: %v", limit, err)
		}
		call.leave(n)
	}
}
