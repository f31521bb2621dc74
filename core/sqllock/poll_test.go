package sqllock_test

import (
	"context"
	sqldriver "database/sql/driver"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/sqllock"
)

// A waiter finds out that a name is free after half a pause, on average. So the first one that has waited for 240 ms or less
// has the name within 15 ms. The next owner comes soon where the last one has just come or gone: also for a waiter that looks
// between the two.
func TestTheFirstInTheQueueLooksOftenAndTheOthersSeldom(t *testing.T) {
	t.Parallel()
	const ms, long = time.Millisecond, 10 * time.Second
	for _, held := range []bool{false, true} {
		for _, c := range []struct {
			dialect     sqllock.Dialect
			waited, ago time.Duration // for the name; since it was taken or freed
			before      int
			want        time.Duration
		}{
			{sqllock.Postgres, 40 * ms, long, 0, 10 * ms}, {sqllock.Postgres, 240 * ms, long, 0, 30 * ms},
			{sqllock.Postgres, long, long, 0, 250 * ms}, {sqllock.MySQL, long, long, 0, 250 * ms}, {sqllock.SQLite, long, long, 0, 25 * ms},
			{sqllock.Postgres, long, long, 3, 1000 * ms}, {sqllock.Postgres, long, ms, 2, 30 * ms},
		} {
			if d := sqllock.Pause(c.dialect, c.waited, c.ago, c.before, held); (d - c.want).Abs() > ms/10 {
				t.Errorf("held %t, %+v: it looks again after %s", held, c, d)
			}
		}
	}
}

// A driver that is cut off gives up its connection, and the next statement has to wait for a new one.
func TestTheEndOfAWaitCutsOffNoLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var looks, cutOff atomic.Int32
		began := time.Now().UnixMicro()
		s, _ := onFake(t, func(ctx context.Context, text string) ([][]sqldriver.Value, error) {
			if !strings.HasPrefix(text, "SELECT") {
				return row(""), nil // a row is changed
			}
			time.Sleep(70 * time.Millisecond)
			looks.Add(1)
			if ctx.Err() != nil {
				cutOff.Add(1)
			}
			now := time.Now()
			state := fmt.Sprintf(`{"q":[{"t":"mine","c":%d,"d":%d}]}`, began, now.Add(driver.PlaceLife(time.Minute)).UnixMicro())
			return row(now.UnixMicro(), "name", "token", "who", began, now.Add(time.Minute).UnixMicro(), began, state, false), nil
		})
		for i := range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second+time.Duration(4*i)*time.Millisecond)
			waits(ctx, t, s, driver.Claim{Name: "name", Token: "mine", TTL: time.Minute})
			cancel()
		}
		if cutOff.Load() > 0 || looks.Load() < 200 {
			t.Errorf("%d of %d looks were cut off", cutOff.Load(), looks.Load())
		}
	})
}
