package zklock_test

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/zklock"
)

func TestAQueueThatIsNotEmptyOrNotOursStays(t *testing.T) {
	t.Parallel()
	conn, session := connect(t, servers.ZooKeeper(t).Addr(), longSession)
	store := zklock.New(conn, session)
	c := driver.Claim{Name: "name", Token: "one", TTL: longTTL}
	other := driver.Claim{Name: "foreign", Token: "one", TTL: longTTL}
	_, err := store.Acquire(t.Context(), c)
	ok(t, err)
	_, err = conn.Create("/holdfast/foreign", nil, zk.FlagPersistent, zk.WorldACL(zk.PermAll)) // by an operator, say
	ok(t, err)
	_, err = store.Acquire(t.Context(), other)
	ok(t, err)
	next := driver.Claim{Name: "name", Token: "two", TTL: longTTL}
	waited := make(chan error, 1)
	go func() {
		_, err := store.Wait(t.Context(), next)
		waited <- err
	}()
	eventually(t, "it is in the queue", func() bool {
		entries, _, err := conn.Children("/holdfast/name")
		return err == nil && len(entries) == 2
	})
	ok(t, store.Release(t.Context(), c))
	ok(t, store.Release(t.Context(), other))
	ok(t, <-waited)
	ok(t, store.Close(t.Context()))
	ok(t, store.Renew(t.Context(), []driver.Claim{next})[0])
	ok(t, store.Release(t.Context(), next))
	ok(t, store.Close(t.Context()))
	for path, want := range map[string]bool{"/holdfast/name": false, "/holdfast/foreign": true} {
		if there, _, err := conn.Exists(path); there != want || err != nil {
			t.Errorf("%s is there: %t, %v", path, there, err)
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
		locks := locker(t, zklock.New(conn, session))
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
