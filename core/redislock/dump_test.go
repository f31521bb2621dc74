package redislock_test

import (
	"errors"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// docs/guarantees.md: a restart from an old dump can bring back a lease that has ended, for one
// TTL.
func TestAnOldDumpBringsBackAnEndedLeaseForOneTTLAtMost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	x := acquire(t, w.locks, "name")
	dumped := time.Now()
	w.do(t, "save")
	ok(t, x.Release(t.Context()))
	w.server.Kill()
	w.server.Restart()
	y, err := w.other.Acquire(t.Context(), "name") // waits for the ghost, if there still is one
	ok(t, err)
	if waited := time.Since(dumped); waited > ttl+ttl/3+5*time.Second { // and for a busy machine
		t.Errorf("the ghost lived for %v after its dump", waited)
	}
	if y.Fence() <= x.Fence() {
		t.Errorf("fence %d after %d", y.Fence(), x.Fence())
	}
	ok(t, y.Release(t.Context()))
}

func TestAGhostOfAnOldDumpIsHeldAndNobodys(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	long, err := w.locks.With(core.WithTTL(time.Minute))
	ok(t, err)
	x := acquire(t, long, "name")
	w.do(t, "save")
	ok(t, x.Release(t.Context()))
	w.server.Kill()
	w.server.Restart()
	eventually(t, "the server answers", func() bool {
		_, err := w.other.TryAcquire(t.Context(), "name")
		return errors.Is(err, core.ErrHeld)
	})
	if left, err := w.direct.PTTL(t.Context(), "holdfast:name").Result(); err != nil || left <= 0 || left > time.Minute {
		t.Errorf("the ghost lives for %v, %v", left, err)
	}
}
