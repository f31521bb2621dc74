package contend

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
)

// Left is told, once, what the end of a hold has come to: the error of the last command, and the panic of a client, if there were any.
type Left interface {
	Left(o hold.Outcome, err error, panicked *call.Panic)
}

// End ends h, whose work was told before. The first command goes out on the caller's goroutine if nothing can delay it there. Everything
// else happens on a goroutine that outlives ctx. to is told either before End returns, or from there. The contexts have ended at now.
func (r *Room) End(ctx context.Context, h *hold.Hold, left claim.Left, now clock.Reading, to Left) {
	x := exit{Leaver: r.NewLeaver(h, left), room: r, to: to}
	s := x.Next(now)
	r.Do(s)
	if s.Do == Send && ctx.Err() == nil && r.Port.Inline(ctx, now.Awake()) {
		tries := r.Port.Tries(now, s.For)
		s = x.Answered(x.send(ctx, now, tries.First(ctx)))
		r.Do(s)
	}
	if s.Do == Over {
		to.Left(x.Outcome, x.err, x.panicked)
		return
	}
	rest, after := x, s
	r.Port.Tasks.Go(func() { rest.run(context.WithoutCancel(ctx), after, now) })
}

// exit carries out the steps of one Leaver.
type exit struct {
	Leaver

	room     *Room
	to       Left
	err      error // of the last command
	panicked *call.Panic
}

// run goes on after s until the end. It has all of its time, whatever the first command has taken.
func (x *exit) run(ctx context.Context, s Step, now clock.Reading) {
	var tries call.Tries
	var within time.Duration
	for s.Do != Over {
		if s.Do != Send {
			if idle := x.Idle(); idle != nil {
				<-idle
			}
			now = x.room.Port.Clock.Read()
			s = x.Next(now)
		} else {
			if within == 0 {
				tries = x.room.Port.Tries(now, s.For)
				within = tries.First(ctx)
			}
			reply := x.send(ctx, now, within)
			if s = x.Answered(reply); s.Do == Again {
				within = tries.Next(ctx, &reply)
				if now, x.err = reply.Now, reply.Err; within > 0 {
					s = x.Next(now)
				} else {
					s = x.GiveUp(now)
				}
			}
		}
		x.room.Do(s)
	}
	x.to.Left(x.Outcome, x.err, x.panicked)
}

// send sends the command.
func (x *exit) send(ctx context.Context, now clock.Reading, within time.Duration) call.Reply {
	reply := x.room.Desk.Release(ctx, x.Ask, now, within)
	x.err = reply.Err
	if v, ok := errors.AsType[*call.Panic](reply.Err); ok {
		x.panicked = v
	}
	return reply
}
