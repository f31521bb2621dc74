package zklock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/zklock"
)

// once uses so many names, each once.
func once(t *testing.T, locks *core.Locker, prefix string, names int) {
	t.Helper()
	var all sync.WaitGroup
	for worker := range 16 {
		all.Go(func() {
			for i := worker; i < names; i += 16 {
				ok(t, locks.Do(t.Context(), fmt.Sprint(prefix, i), func(context.Context) error { return nil }))
			}
		})
	}
	all.Wait()
}

// The server itself deletes empty containers too: at most 10,000 a minute, in the order of their names, once a minute.
func TestNamesThatWereUsedOnceLeaveNothing(t *testing.T) {
	t.Parallel()
	conn, session := connect(t, servers.ZooKeeper(t).Addr(), longSession)
	left := func() int {
		names, _, err := conn.Children("/holdfast")
		ok(t, err)
		return len(names)
	}
	locks, err := core.New(zklock.New(conn, session), core.WithTTL(longTTL))
	ok(t, err)
	once(t, locks, "early-", 500)
	eventually(t, "none of the names is left", func() bool { return left() == 0 })
	once(t, locks, "late-", 10_000)
	ok(t, locks.Close(t.Context()))
	if n := left(); n > 0 {
		t.Errorf("%d names are left after Close", n)
	}
}

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
		seats, _, err := conn.Children("/holdfast/name")
		return err == nil && len(seats) == 2
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
