package contend

import (
	"context"
	"sync"

	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
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

// NewRoom returns a room that sends through p until life ends.
func NewRoom(life context.Context, p *call.Port) *Room {
	r := &Room{Port: p, Dog: watchdog.New[*hold.Hold](p), Desk: claim.NewDesk(p), life: life}
	r.long.room = r
	context.AfterFunc(life, r.Poke)
	r.Table, r.Can, r.Site = NewTable(), p.Can, hold.Site{Watch: r.Dog, Keeper: r, Desk: r.Desk}
	return r
}

// Close passes no hold on any more, and makes clean-up end soon. life has ended before.
func (r *Room) Close() {
	r.Closed.Store(true)
	r.long.stop()
	r.Desk.Close()
}

// Poke has all calls that wait ask Guest.Gone again.
func (r *Room) Poke() { r.Table.Poke(func(Waiting) bool { return true }) }

// Do does what a step says is done before all.
func (r *Room) Do(s Step) {
	if s.Start != nil {
		r.start(s.Start)
	}
	if s.Behind != nil && s.Clean != (claim.Cleanup{}) {
		r.Desk.Clean(s.Behind, s.Clean)
	}
}

func (r *Room) start(a *Asker) { r.Port.Tasks.Go(func() { r.ask(a) }) }

// Lost implements hold.Keeper.
func (r *Room) Lost(h *hold.Hold) {
	r.Do(r.Place.Lost(h, r.Port.Clock.Read()))
}
