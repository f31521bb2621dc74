package servers

import (
	"testing"
)

func TestSharedServerRunsAsLongAsSomebodyUsesIt(t *testing.T) {
	t.Parallel()
	var r SharedRedis
	var addr string
	var pid int
	t.Run("outer", func(t *testing.T) {
		mine := r.Use(t)
		addr = mine.Addr
		pid = r.server.PID()
		t.Run("inner", func(t *testing.T) {
			theirs := r.Use(t)
			wants(t, theirs.Addr, "SET k v", "OK")
			if theirs.Prefix == mine.Prefix {
				t.Errorf("both have the prefix %q", mine.Prefix)
			}
		})
		wants(t, addr, "GET k", "v")
	})
	wantRefused(t, addr)
	wantGone(t, pid)

	again := r.Use(t)
	wants(t, again.Addr, "GET k", "<nil>")
}
