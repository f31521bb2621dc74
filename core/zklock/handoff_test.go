package zklock

import (
	"errors"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
)

// Who leaves a name for a hand-off may be gone before anybody comes: so it is not ephemeral. Who wants the name deletes it at its time,
// or the Store that has left it.
func TestAHandoffOutlivesTheProcessThatLeftItAndIsDeletedAtItsTime(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t)
	conn, session := connect(t, server.Addr(), longSession)
	locks := locker(t, New(conn, session))
	x := acquire(t, locks, "name")
	handoff, err := x.Detach(t.Context(), time.Minute)
	ok(t, err)
	_, err = acquire(t, locks, "brief").Detach(t.Context(), ttl)
	ok(t, err)
	conn.Close() // and with it its session
	direct, directSession := connect(t, server.Addr(), longSession)
	store := New(direct, directSession)
	other := locker(t, store)
	if _, err = other.TryAcquire(t.Context(), "name"); !errors.Is(err, core.ErrHeld) {
		t.Fatalf("nobody has it, or: %v", err)
	}
	y, err := other.Attach(t.Context(), handoff)
	ok(t, err)
	backendtest.Grows(t, y.Fence(), x.Fence())
	_, err = y.Detach(t.Context(), ttl)
	ok(t, err)
	waiter := driver.Claim{Name: "brief", Token: "waiter", TTL: longTTL}
	began := time.Now()
	_, err = store.Wait(t.Context(), waiter)
	ok(t, err)
	if waited := time.Since(began); waited > longTTL {
		t.Errorf("waited for %s", waited)
	}
	ok(t, store.Release(t.Context(), waiter))
	for _, name := range []string{"name", "brief"} {
		eventually(t, "nothing is left of "+name, func() bool {
			entries, _, err := direct.Children("/holdfast/" + name)
			return len(entries) == 0 && (err == nil || errors.Is(err, zk.ErrNoNode))
		})
	}
}
