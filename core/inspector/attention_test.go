package inspector_test

import (
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

func TestAttentionIsDrawnToWhatIsNotRenewedAndToLongWaitsAndToNothingElse(t *testing.T) {
	t.Parallel()
	const ttl = 10 * time.Second
	lease := func(name string, kind inspect.HoldKind, heldFor, remaining, waited time.Duration) inspect.LeaseInfo {
		info := inspect.LeaseInfo{Name: name, Held: true, Kind: kind, HeldFor: heldFor, Remaining: remaining}
		if waited > 0 {
			info.Line = []inspect.WaiterInfo{{Waited: waited, Alive: true}, {Waited: time.Hour}}
		}
		return info
	}
	for _, c := range []struct {
		what string
		now  inspect.LeaseInfo
		want string
	}{
		{"renewed as it should be", lease("a", inspect.HoldExclusive, time.Hour, ttl*2/3, 0), "[]"},
		{"a short lease that nobody has to renew", lease("a", inspect.HoldExclusive, 9*time.Second, time.Second, 0), "[]"},
		{"kept by nobody", lease("a", inspect.HoldKept, time.Hour, time.Second, 0), "[]"},
		{"other software", lease("a", inspect.HoldForeign, time.Hour, time.Second, 0), "[]"},
		{"not renewed any more", lease("a", inspect.HoldExclusive, time.Hour, 2*time.Second, time.Hour),
			"[{a is not renewed: its holder is dead or cut off, and it comes free in 2 s}]"},
		{"a wait as it happens, and a dead one", lease("a", inspect.HoldExclusive, time.Hour, ttl, 30*time.Second), "[]"},
		{"a long wait", lease("a", inspect.HoldExclusive, time.Hour, ttl, 31*time.Second), "[{a has a call that has waited for 31 s}]"},
		{"a very long wait", lease("a", inspect.HoldLimited, time.Hour, ttl, 7*time.Minute), "[{a has a call that has waited for 7 min}]"},
	} {
		before := c.now
		before.Remaining, before.Line = ttl, nil
		var told atomic.Pointer[inspect.LeaseInfo]
		told.Store(&before) // so that the page knows the TTL
		virtual(t, &disturbed{change: func(info *inspect.LeaseInfo) { *info = *told.Load() }}, func(b *bench) {
			b.acquire(b.locks, "a")
			w := b.watch(b.page, "")
			w.next()
			told.Store(&c.now)
			time.Sleep(3 * time.Second)
			w.next()
			if got := fmt.Sprint(w.next().Attention); got != c.want {
				b.Errorf("%s: %s, want %s", c.what, got, c.want)
			}
		})
	}
}
