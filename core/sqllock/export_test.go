package sqllock

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// Queue puts c in the queue, as a waiter does, and calls between after it has read the row, each time.
func (s *Store) Queue(ctx context.Context, c driver.Claim, between func()) error {
	return s.change(ctx, c, func(r *row) {
		between()
		r.stand(c, "", true)
	})
}

// Pause is how long a waiter that has waited for so long waits before it looks again, where so many are before it, and the
// name was taken, or freed, a while ago.
func Pause(d Dialect, waited, ago time.Duration, before int, held bool) time.Duration {
	r := row{now: time.Now().UnixMicro()}
	r.fence = r.now - ago.Microseconds()
	if held {
		r.token, r.turn = "holder", r.fence
	}
	for i := range before + 1 {
		r.Queue = append(r.Queue, entry{Token: string(rune('a' + i)), Came: r.now - waited.Microseconds()})
	}
	return r.pause(driver.Claim{Token: string(rune('a' + before))}, d.lastPoll())
}
