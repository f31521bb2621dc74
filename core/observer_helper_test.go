package core_test

import (
	"context"

	"github.com/holdfast-go/holdfast/core"
)

// observer has a function for each kind of events. Those that are nil are skipped.
type observer struct {
	Acquired, Held, Waiting, LongWait, Waited, Failed, Limited, Renewed, Lost, Released, Unconfirmed, Missed, Degraded func(core.Event)

	Dropped     func(events int)
	WorkContext func(context.Context, core.Event) context.Context
}

// observing has o told.
func observing(o observer) core.NewOption {
	if o.WorkContext != nil {
		return core.Options(core.WithObserver(o.tell), core.WithWorkContext(o.WorkContext))
	}
	return core.WithObserver(o.tell)
}

func (o observer) tell(e core.Event) {
	f := map[core.EventKind]func(core.Event){
		core.EventAcquired: o.Acquired, core.EventHeld: o.Held, core.EventWaiting: o.Waiting, core.EventLongWait: o.LongWait,
		core.EventWaited: o.Waited, core.EventFailed: o.Failed, core.EventLimited: o.Limited, core.EventRenewed: o.Renewed,
		core.EventLost: o.Lost, core.EventReleased: o.Released, core.EventUnconfirmed: o.Unconfirmed, core.EventMissed: o.Missed,
		core.EventDegraded: o.Degraded,
	}[e.Kind]
	if f != nil {
		f(e)
	}
	if e.Kind == core.EventDropped && o.Dropped != nil {
		o.Dropped(e.Dropped)
	}
}
