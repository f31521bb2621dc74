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
	at   atomic.Int64 // when it fires, as clock.Awake; 0 if it is not set

	mu    sync.Mutex // protects the timer
	timer *time.Timer
}

// by has the calls looked at by then.
func (x *long) by(due clock.Awake) {
	if at := x.at.Load(); at != 0 && at <= int64(due) {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if at := x.at.Load(); at != 0 && at <= int64(due) || x.room.life.Err() != nil {
		return
	}
	x.at.Store(int64(due))
	wait := max(0, due.Sub(x.room.Port.Clock.Now()))
	if x.timer == nil {
		x.timer = time.AfterFunc(wait, x.look)
	} else {
		x.timer.Reset(wait)
	}
}

// look pokes those who have waited for long, and says when it may be so for the next one.
func (x *long) look() {
	x.at.Store(0) // before it looks: who comes after that sets it for himself
	now, next := x.room.Port.Clock.Now(), clock.Never
	x.room.Table.Poke(func(w Waiting) bool {
		due := w.Began.Add(w.Long)
		if w.Long > 0 && due > now {
			next = min(next, due)
		}
		return w.Long > 0 && due <= now
	})
	if next != clock.Never {
		x.by(next)
	}
}

// stop is for the end of the room.
func (x *long) stop() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.timer != nil {
		x.timer.Stop()
	}
}
