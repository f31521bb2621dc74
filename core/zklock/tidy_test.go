package zklock

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

func TestAQueueThatIsNotOursStays(t *testing.T) {
	t.Parallel()
	s := open(t)
	ok(t, (&call{Store: s, ctx: t.Context()}).makeDir("name"))
	_, err := s.conn.Create("/holdfast/foreign", nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll)) // by an operator, say
	ok(t, err)
	for name, stays := range map[string]bool{"name": false, "foreign": true} {
		take(t, s, claim(name, "token"))
		ok(t, s.Release(t.Context(), claim(name, "token")))
		ok(t, s.Close(t.Context()))
		if there, _, err := s.conn.Exists("/holdfast/" + name); there != stays || err != nil {
			t.Errorf("%s is there: %t, %v", name, there, err)
		}
	}
}

// Between a look at a queue and the znode in it, the queue may go: all the time, here.
func TestAQueueThatGoesBeforeANewcomerIsInItIsMadeAgain(t *testing.T) {
	t.Parallel()
	addr := servers.ZooKeeper(t).Addr()
	ctx, stop := context.WithCancel(t.Context())
	var deleting sync.WaitGroup
	conn, _ := connect(t, addr, longSession)
	deleting.Go(func() {
		for ctx.Err() == nil {
			err := conn.Delete("/holdfast/name", -1)
			if err != nil && !errors.Is(err, zk.ErrNoNode) && !errors.Is(err, zk.ErrNotEmpty) {
				t.Error(err)
			}
		}
	})
	defer deleting.Wait()
	defer stop()
	var all sync.WaitGroup
	var inside sync.Mutex
	for range 3 {
		conn, session := connect(t, addr, longSession)
		locks := locker(t, New(conn, session))
		all.Go(func() {
			for range 50 {
				ok(t, locks.Do(t.Context(), "name", func(context.Context) error {
					if !inside.TryLock() {
						t.Error("two holders")
						return nil
					}
					defer inside.Unlock()
					return nil
				}))
			}
		})
	}
	all.Wait()
}
