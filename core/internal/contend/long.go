package contend

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// long is one timer for all calls of a room that may wait for long. Most waits are short, and a timer for each of them would cost as much
// as a turn.
type long struct {
	room *Room
	at   atomic.Int64 // when it fires, as clock.Awake; clock.Never if it is not set

	mu    sync.Mutex  // protects the timer
	timer *time.Timer // after the end of the room it finds nobody
}

// by has the calls looked at by then.
func (x *long) by(due clock.Awake) {
	if x.at.Load() <= int64(due) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.at.Load() <= int64(due) { // somebody who waits for less has come at the same time
		return
	}
	x.at.Store(int64(due))
	x.timer.Reset(due.Sub(x.room.Port.Clock.Now()))
}

// look pokes those who have waited for long, and says when it may be so for the next one.
func (x *long) look() {
	x.at.Store(int64(clock.Never)) // before it looks: who comes after that sets it for himself
	now, next := x.room.Port.Clock.Now(), clock.Never
	x.room.Table.Poke(func(w Waiting) bool {
		if w.Long > now {
			next = min(next, w.Long)
		}
		return w.Long <= now
	})
	x.by(next)
}
