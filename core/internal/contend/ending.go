package contend

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
)

// Left is told, once, what the end of a hold has come to, and the error of the last command, or of one in which the client has panicked.
type Left interface {
	Left(o hold.Outcome, err error)
}

// End ends h, whose work was told before. The first command goes out on the caller's goroutine if nothing can delay it there. Everything
// else happens on a goroutine that outlives ctx. to is told either before End returns, or from there. The contexts have ended at now.
func (r *Room) End(ctx context.Context, h *hold.Hold, left claim.Left, now clock.Reading, to Left) {
	x := exit{Leaver: r.NewLeaver(h, left), room: r, to: to}
	s := x.Next(now)
	r.Do(s)
	if s.Do == Send && ctx.Err() == nil && r.Port.Inline(ctx, now.Awake()) {
		tries := r.Port.Tries(now, s.For)
		reply := x.send(ctx, now, tries.First(ctx))
		x.heard(reply.Err)
		s = x.Answered(reply)
		r.Do(s)
	}
	if s.Do == Over {
		to.Left(x.Outcome, x.err)
		return
	}
	rest, after := x, s
	r.Port.Tasks.Go(func() { rest.run(context.WithoutCancel(ctx), after, now) })
}

// exit carries out the steps of one Leaver.
type exit struct {
	Leaver

	room *Room
	to   Left
	err  error // for Left
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
				if now = reply.Now; within > 0 {
					s = x.Next(now)
				} else {
					s = x.GiveUp(now)
				}
			}
			x.heard(reply.Err)
		}
		x.room.Do(s)
	}
	x.to.Left(x.Outcome, x.err)
}

// send sends the command.
func (x *exit) send(ctx context.Context, now clock.Reading, within time.Duration) call.Reply {
	return x.room.Desk.Release(ctx, x.Ask, now, within)
}

// heard takes note of what a command has come to.
func (x *exit) heard(err error) {
	if !call.Panicked(x.err) {
		x.err = err
	}
}
