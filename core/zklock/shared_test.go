package zklock_test

import (
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/zklock"
)

// Readers wait for the last writer before them, and a writer for whoever is right before it: a
// release wakes up those whose turn it is, and nobody else.
func TestReadersBehindAWriterWatchIt(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t)
	conn, session := connect(t, server.Addr(), longSession)
	store := zklock.New(conn, session)
	writer := driver.Claim{Name: "name", Token: "writer", TTL: longTTL}
	_, err := store.Acquire(t.Context(), writer)
	ok(t, err)
	granted := make(chan error, 2)
	var readers []driver.Claim
	for _, token := range []string{"one", "two"} {
		c := driver.Claim{Name: "name", Token: token, TTL: longTTL, Limit: driver.Readers}
		readers = append(readers, c)
		go func() {
			_, err := store.Wait(t.Context(), c)
			granted <- err
		}()
	}
	eventually(t, "both are in the queue", func() bool {
		seats, _, err := conn.Children("/holdfast/name")
		return err == nil && len(seats) == 3
	})
	eventually(t, "both watch the writer, and nobody a reader", func() bool {
		watches := tell(t, server.Addr(), "wchp")
		return strings.Contains(watches, "/holdfast/name/write-") && !strings.Contains(watches, "/holdfast/name/read-")
	})
	ok(t, store.Release(t.Context(), writer))
	for range readers {
		ok(t, <-granted)
	}
	for _, c := range readers {
		ok(t, store.Release(t.Context(), c))
	}
}
