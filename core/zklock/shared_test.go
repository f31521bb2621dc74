package zklock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
	"github.com/holdfast-go/holdfast/core/zklock"
)

func TestEachReaderIsFoundByAnotherStoreToo(t *testing.T) {
	t.Parallel()
	server := servers.ZooKeeper(t)
	open := func() *zklock.Store {
		conn, session := connect(t, server.Addr(), longSession)
		return zklock.New(conn, session)
	}
	mine, other := open(), open()
	readers := make([]driver.Claim, 3)
	for i := range readers {
		readers[i] = driver.Claim{Name: "name", Token: strings.Repeat("abc"[i:i+1], 22), TTL: longTTL, Limit: driver.Readers}
		_, err := mine.Acquire(t.Context(), readers[i])
		ok(t, err)
	}
	for i, err := range other.Renew(t.Context(), readers) {
		if err != nil {
			t.Errorf("reader %d: %v", i, err)
		}
	}
	writer := driver.Claim{Name: "name", Token: "writer", TTL: longTTL}
	for _, c := range readers {
		if _, err := other.Acquire(t.Context(), writer); err == nil {
			t.Error("a writer beside a reader")
		}
		ok(t, other.Release(t.Context(), c))
		if err := mine.Renew(t.Context(), []driver.Claim{c})[0]; !errors.Is(err, driver.ErrNotOwner) {
			t.Errorf("renewal of what was released: %v", err)
		}
	}
	_, err := other.Acquire(t.Context(), writer)
	ok(t, err)
	ok(t, other.Release(t.Context(), writer))
}

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
	eventually(t, "both stand in line", func() bool {
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
