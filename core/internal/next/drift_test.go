//go:build next

package core_test

import (
	"testing"
	"time"

	core "github.com/holdfast-go/holdfast/core/internal/next"
)

// The clocks' rates may differ by 1%: see the conditions of docs/guarantees.md.
func TestAClockThatIsOnePercentSlowTrustsNothingAfterTheServersExpiry(t *testing.T) {
	t.Parallel()
	const slow = 0.99 // of a second by it, for each second of the server's
	for _, ttl := range []time.Duration{100 * time.Millisecond, 101 * time.Millisecond, time.Second, 10 * time.Second, time.Hour} {
		virtual(t, func(b *bench) {
			asked := time.Now()
			x := b.acquire(b.locks, "name", core.WithTTL(ttl), core.WithMaxHold(0))
			trusted := float64(x.ValidUntil().Sub(asked)) / slow // by the server's clock
			if trusted >= float64(ttl) {
				b.Errorf("TTL %v: trusted for %v of the server's time", ttl, time.Duration(trusted))
			}
			if trusted < float64(ttl)*0.95 {
				b.Errorf("TTL %v: trusted for %v of the server's time only", ttl, time.Duration(trusted))
			}
			b.ok(x.Release(b.Context()))
		})
	}
}
