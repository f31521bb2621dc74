package core_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// What those who waited were told is no answer to a call that comes once they have left: it asks by itself when the asker, who only
// clears up behind them, has gone. A wait that hangs does not hold it up.
func TestATryAfterTheLastWaiterHasLeftAsksByItself(t *testing.T) {
	t.Parallel()
	each(t, map[string]lab.Fate{"its wait ends": lab.Delivered, "its wait hangs": lab.ReplyHeldBack}, func(b *bench, fate lab.Fate) {
		b.Cleanup(func() { b.link.Deliver() })
		b.acquire(b.other(), "name")
		b.link.All(fate, lab.OpWait)
		gone := b.call(b.locks)
		b.link.Delay(20*time.Millisecond, 20*time.Millisecond)
		gone.cancel()
		synctest.Wait()
		asked := b.link.Calls(lab.OpAcquire)
		b.taken(b.locks, "name")
		b.sent(asked+1, lab.OpAcquire)
	})
}
