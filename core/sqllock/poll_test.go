package sqllock_test

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/sqllock"
)

// queued is a name that somebody has, and its queue, of which the token that looks is the last one.
type queued struct {
	ahead   int
	came    time.Time
	granted atomic.Int64 // microseconds
	takes   time.Duration
	cutOff  atomic.Int64

	mu    sync.Mutex // protects looks
	looks []time.Time
}

func (q *queued) answer(ctx context.Context, text string) ([][]sqldriver.Value, error) {
	switch {
	case strings.Contains(text, "version()"):
		return aboutItself(text, "15.18", true), nil
	case !strings.HasPrefix(text, "SELECT"):
		return row(""), nil // a row is changed
	}
	time.Sleep(q.takes)
	if ctx.Err() != nil {
		q.cutOff.Add(1)
	}
	now := time.Now()
	q.mu.Lock()
	q.looks = append(q.looks, now)
	q.mu.Unlock()
	var places []string
	for i := range q.ahead {
		places = append(places, q.place(fmt.Sprint("other-", i), now))
	}
	state := `{"q":[` + strings.Join(append(places, q.place("mine", now)), ",") + `]}`
	return row(now.UnixMicro(), "name", "token", "who", q.granted.Load(), now.Add(time.Minute).UnixMicro(), q.granted.Load(), state, false), nil
}

func (q *queued) place(id string, now time.Time) string {
	return fmt.Sprintf(`{"t":%q,"c":%d,"d":%d}`, id, q.came.UnixMicro(), now.Add(driver.PlaceLife(time.Minute)).UnixMicro())
}

// looksOf returns when a place looks that has so many ahead of it, for a while in which the name has two owners.
func looksOf(t *testing.T, d sqllock.Dialect, ahead int, each time.Duration) (q *queued) {
	t.Helper()
	q = &queued{ahead: ahead, came: time.Now()}
	q.granted.Store(q.came.UnixMicro())
	db := sql.OpenDB(fake(q.answer))
	s := sqllock.New(db, d)
	ctx, cancel := context.WithTimeout(t.Context(), 2*each)
	defer cancel()
	time.AfterFunc(each, func() { q.granted.Store(time.Now().UnixMicro()) })
	waits(ctx, t, s, driver.Claim{Name: "name", Token: "mine", TTL: time.Minute})
	ok(t, db.Close())
	return q
}

// A waiter finds out that a name is free after half a pause, on average. So the first one that has waited for 240 ms or less
// has the name within 15 ms.
func TestTheFirstInTheQueueLooksOftenAndTheOthersSeldom(t *testing.T) {
	t.Parallel()
	const each = 4 * time.Second
	for d, longest := range map[sqllock.Dialect]time.Duration{
		sqllock.Postgres: 250 * time.Millisecond, sqllock.MySQL: 250 * time.Millisecond, sqllock.SQLite: 25 * time.Millisecond,
	} {
		t.Run(string(d), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var first int
				for _, ahead := range []int{0, 1, 9} {
					q := looksOf(t, d, ahead, each)
					began, second := q.looks[0], q.looks[0].Add(each)
					for i, at := range q.looks[1:] {
						last := q.looks[i]
						owned := last.Sub(began)
						if !last.Before(second) {
							owned = last.Sub(second)
						}
						want := min(min(max(owned/8, 10*time.Millisecond), longest)*time.Duration(ahead+1), time.Second)
						if pause := at.Sub(last); (pause - want).Abs() > 100*time.Microsecond { // the server counts in microseconds
							t.Errorf("%d ahead: a pause of %v after %v of one owner, not %v", ahead, pause, owned, want)
						}
					}
					switch n := len(q.looks); {
					case ahead == 0:
						first = n
					case n > first*2/3 || ahead == 9 && n > first/5: // at most a second is between two looks
						t.Errorf("%d looks with %d ahead, %d of the first one", n, ahead, first)
					}
				}
			})
		})
	}
}

// A driver that is cut off gives up its connection, and the next statement has to wait for a new one.
func TestTheEndOfAWaitCutsOffNoLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		q := &queued{came: time.Now(), takes: 70 * time.Millisecond}
		q.granted.Store(q.came.UnixMicro())
		db := sql.OpenDB(fake(q.answer))
		s := sqllock.New(db, sqllock.Postgres)
		for i := range 100 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Second+time.Duration(4*i)*time.Millisecond)
			waits(ctx, t, s, driver.Claim{Name: "name", Token: "mine", TTL: time.Minute})
			cancel()
		}
		if n := q.cutOff.Load(); n > 0 || len(q.looks) < 200 {
			t.Errorf("%d of %d looks were cut off", n, len(q.looks))
		}
		ok(t, db.Close())
	})
}

// The next owner comes soon where the last one has just come or gone: also for a waiter that looks between the two.
func TestThePaceFollowsTheLastChangeOfTheName(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{false, true} {
		if d := sqllock.Pause(10*time.Second, time.Millisecond, 2, held); d > 50*time.Millisecond {
			t.Errorf("held %t: the third looks again after %s", held, d)
		}
		if d := sqllock.Pause(10*time.Second, 10*time.Second, 0, held); d != 250*time.Millisecond {
			t.Errorf("held %t: after 10 s of the same the first looks again after %s", held, d)
		}
	}
}
