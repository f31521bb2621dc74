package sqllock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest/servers"
)

// A release that tells a waiter does not wait for the disk: a crash can undo it. One that leaves the name taken must not be
// undone, since it may have to last for longer than the TTL. Releases of many goroutines share statements.
func TestWhatAReleaseLeavesTakenOutlivesACrash(t *testing.T) {
	t.Parallel()
	srv := servers.Postgres(t, append(durable, "-c", "wal_writer_delay=10s")...)
	d := postgres(srv.Addr(), "")
	d.exec(t, schema(t, d.dialect))
	s := d.store(t, "holdfast_locks")
	var claims []driver.Claim
	for i := range 200 {
		c := driver.Claim{Name: fmt.Sprint("told:", i), Token: fmt.Sprint("token:", i), TTL: time.Minute}
		if i%2 == 1 {
			c.Name, c.Keep = fmt.Sprint("kept:", i), time.Hour
		}
		granted(t, s, c)
		claims = append(claims, c)
	}
	d.exec(t, "UPDATE holdfast_locks SET head = 'holdfast_nobody token' WHERE name LIKE 'told:%'")
	var all sync.WaitGroup
	for _, c := range claims {
		all.Go(func() {
			if err := s.Release(t.Context(), c); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	srv.Kill()
	srv.Restart()
	for _, c := range claims {
		if c.Keep == 0 {
			continue
		}
		eventually(t, "it answers", func() bool { _, err := s.Inspect(t.Context(), c.Name); return err == nil })
		if info, err := s.Inspect(t.Context(), c.Name); err != nil || !info.Kept {
			t.Fatalf("%s: %+v, %v", c.Name, info, err)
		}
	}
}
