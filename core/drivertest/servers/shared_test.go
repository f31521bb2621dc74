package servers

import (
	"testing"
)

func TestConcurrentUsersStartOneServer(t *testing.T) {
	t.Parallel()
	var r SharedRedis
	shares := make(chan Share, 20)
	t.Run("users", func(t *testing.T) {
		for range cap(shares) {
			t.Run("user", func(t *testing.T) {
				t.Parallel()
				s := r.Use(t)
				dial(t, s.Addr).do("SET "+s.Prefix+"k v", "+OK")
				shares <- s
			})
		}
	})
	close(shares)
	prefixes := make(map[string]bool)
	for s := range shares {
		prefixes[s.Prefix] = true
	}
	if len(prefixes) != cap(shares) {
		t.Errorf("%d prefixes for %d users", len(prefixes), cap(shares))
	}
}

func TestSharedServerRunsAsLongAsSomebodyUsesIt(t *testing.T) {
	t.Parallel()
	var r SharedRedis
	var addr string
	var pid int
	t.Run("outer", func(t *testing.T) {
		addr = r.Use(t).Addr
		pid = r.server.PID()
		t.Run("inner", func(t *testing.T) {
			dial(t, r.Use(t).Addr).do("SET k v", "+OK")
		})
		dial(t, addr).do("GET k", "$1", "v")
	})
	wantRefused(t, addr)
	wantGone(t, pid)

	again := r.Use(t)
	dial(t, again.Addr).do("GET k", "$-1")
}
