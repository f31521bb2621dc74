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
	Dog  *watchdog.Dog

	Desk *claim.Desk

	life   context.Context // ends when the Locker is closed
	timers sync.Pool       // of *time.Timer, which nearly every wait needs, and which rarely fire
}

// NewRoom returns a room that sends through p until life ends.
func NewRoom(life context.Context, p *call.Port) *Room {
	r := &Room{Port: p, Dog: watchdog.New(p), Desk: claim.NewDesk(p), life: life}
	r.Table, r.Claim, r.Watch, r.Keeper, r.Can = NewTable(), r.Desk.New, r.Dog, r, p.Can
	return r
}

// Close passes no hold on any more, and makes clean-up end soon. life has ended before.
func (r *Room) Close() {
	r.Closed.Store(true)
	r.Desk.Close()
}

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
	r.Do(r.Place.Lost(lineOf(h), h, r.Port.Clock.Read()))
}

func lineOf(h *hold.Hold) *Line { return h.Line.(*Line) } //nolint:forcetypeassert // Place.hold has set it
