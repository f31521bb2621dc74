package zklock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/zklock"
)

// Who leaves a name for a hand-off may be gone before anybody comes.
func TestAHandoffOutlivesTheProcessThatLeftIt(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t)
	conn, session := connect(t, server.Addr(), longSession)
	x := acquire(t, locker(t, zklock.New(conn, session)), "name")
	handoff, err := x.Detach(t.Context(), time.Minute)
	ok(t, err)
	conn.Close() // and with it its session
	otherConn, otherSession := connect(t, server.Addr(), longSession)
	other := locker(t, zklock.New(otherConn, otherSession))
	_, err = other.TryAcquire(t.Context(), "name")
	is(t, err, core.ErrHeld)
	y, err := other.Attach(t.Context(), handoff)
	ok(t, err)
	backendtest.Grows(t, y.Fence(), x.Fence())
	ok(t, y.Release(t.Context()))
	ok(t, acquire(t, other, "name", core.WithWait(0)).Release(t.Context()))
}

// It is not ephemeral. So if its process is gone, whoever wants the name deletes it at its time.
func TestAHandoffThatNobodyComesForIsDeletedByWhoeverWantsTheName(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t)
	conn, session := connect(t, server.Addr(), longSession)
	direct, directSession := connect(t, server.Addr(), longSession)
	other := zklock.New(direct, directSession)
	x := acquire(t, locker(t, zklock.New(conn, session)), "name")
	_, err := x.Detach(t.Context(), ttl)
	ok(t, err)
	conn.Close()
	waiter := driver.Claim{Name: "name", Token: "waiter", TTL: longTTL}
	began := time.Now()
	_, err = other.Wait(t.Context(), waiter)
	ok(t, err)
	if waited := time.Since(began); waited > longTTL {
		t.Errorf("waited for %s", waited)
	}
	ok(t, other.Release(t.Context(), waiter))
	entries, _, err := direct.Children("/holdfast/name")
	if len(entries) > 0 || err != nil && !errors.Is(err, zk.ErrNoNode) {
		t.Errorf("left: %q, %v", entries, err)
	}
}

// Nobody has to ask for the name again.
func TestAStoreDeletesWhatItHasLeftAtItsTime(t *testing.T) {
	t.Parallel()
	conn, session := connect(t, servers.ZooKeeper(t).Addr(), longSession)
	x := acquire(t, locker(t, zklock.New(conn, session)), "name")
	_, err := x.Detach(t.Context(), ttl)
	ok(t, err)
	eventually(t, "nothing is left", func() bool {
		entries, _, err := conn.Children("/holdfast/name")
		return len(entries) == 0 && (err == nil || errors.Is(err, zk.ErrNoNode))
	})
}
