package core_test

import (
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// A tenure that comes by an offer has no turns before its first renewal is answered, and work may be over
// sooner. Where others wait behind the contender, it claims a block of turns instead.
func TestWhereManyWaitInManyProcessesMostTurnsCostNoCommand(t *testing.T) {
	t.Parallel()
	virtual(t, func(b *bench) {
		const procs, each = 4, 4
		all := []*core.Locker{b.locks}
		for range procs - 1 {
			link := lab.New(b.store)
			link.Delay(100*time.Microsecond, 100*time.Microsecond)
			all = append(all, b.locker(link))
		}
		b.link.Delay(100*time.Microsecond, 100*time.Microsecond)
		turns := 0 // of the first process, under the lock
		began := time.Now()
		var wg sync.WaitGroup
		for i := range procs * each {
			wg.Go(func() {
				for time.Since(began) < 100*time.Millisecond {
					x, err := all[i%procs].Acquire(b.Context(), "name")
					b.ok(err)
					if i%procs == 0 {
						turns++
					}
					b.ok(x.Release(b.Context()))
				}
			})
		}
		wg.Wait()
		if n := b.commands(); n > turns {
			b.Errorf("%d commands for %d turns", n, turns)
		}
		b.free()
	})
}
