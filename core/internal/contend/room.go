package contend

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
	"github.com/holdfast-go/holdfast/core/internal/watchdog"
)

// Room carries out the steps of one Locker.
type Room struct {
	Place

	Port *call.Port
	Dog  *watchdog.Dog[*hold.Hold]

	Desk *claim.Desk

	life    context.Context // ends when the Locker is closed
	timers  sync.Pool       // of *time.Timer, which nearly every wait needs, and which rarely fire
	callers sync.Pool       // of *Caller, since each has a channel
	long    long
}

// NewRoom returns a room that sends through p until life ends. k is told what happens to its holds by themselves.
func NewRoom(life context.Context, p *call.Port, k hold.Keeper) *Room {
	r := &Room{Port: p, Dog: watchdog.New[*hold.Hold](p), Desk: claim.NewDesk(p), life: life}
	r.long.room, r.long.timer = r, time.AfterFunc(Forever, r.long.look)
	r.long.at.Store(int64(clock.Never))
	r.long.timer.Stop()
	context.AfterFunc(life, r.Poke)
	r.Table, r.Can, r.Site = NewTable(), p.Can, hold.Site{Watch: r.Dog, Keeper: k, Desk: r.Desk}
	return r
}

// Poke has all calls that wait ask Guest.Gone again.
func (r *Room) Poke() { r.Table.Poke(func(Waiting) bool { return true }) }

// Do does what a step says is done before all.
func (r *Room) Do(s Step) {
	if a := s.Start; a != nil {
		r.Port.Tasks.Go(func() { r.ask(a) })
	}
	r.Desk.Clean(s.Behind, s.Clean)
}

// Lost does what has to be done for a hold that was lost.
func (r *Room) Lost(h *hold.Hold) {
	r.Do(r.Place.Lost(h, r.Port.Clock.Read()))
}
