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
	steps := r.NewLeaver(h, left)
	first := steps.Next(now)
	if first.Do == Over { // it was passed on, mostly
		r.Do(first)
		to.Left(steps.Outcome, nil, nil)
		return
	}
	x := exit{room: r, steps: steps, step: first, to: to, now: now}
	if ctx.Err() == nil && r.Port.Inline(ctx, now.Awake()) && x.run(ctx, true) {
		return
	}
	rest := x
	r.Port.Tasks.Go(func() { rest.run(context.WithoutCancel(ctx), false) })
}

// exit carries out the steps of one Leaver.
type exit struct {
	room     *Room
	steps    Leaver
	to       Left
	step     Step
	now      clock.Reading // of the last step
	tries    call.Tries
	within   time.Duration
	again    call.Reply // after which a command is to be sent again
	err      error      // of the last command
	panicked *call.Panic
}

// run goes on until the end, and says whether it has come. With once, it stops before what takes longer than one command.
func (x *exit) run(ctx context.Context, once bool) (over bool) {
	for {
		x.room.Do(x.step)
		switch s := x.step; s.Do {
		case Over:
			x.to.Left(x.steps.Outcome, x.err, x.panicked)
			return true
		case Idle:
			if once {
				x.step = Step{Do: Again}
				return false
			}
			if idle := x.steps.Idle(); idle != nil {
				<-idle
			}
			x.next()
		case Send:
			x.send(ctx, s)
		default:
			if once && x.again.Err != nil { // what follows is not for somebody who has no time, and has all of its own
				x.again, x.within = call.Reply{}, 0
				return false
			}
			x.pause(ctx)
		}
	}
}

func (x *exit) send(ctx context.Context, s Step) {
	if x.within == 0 {
		x.tries = x.room.Port.Tries(x.now, s.For)
		x.within = x.tries.First(ctx)
	}
	reply := x.room.Desk.Release(ctx, x.steps.Ask, x.now, x.within)
	if v, ok := errors.AsType[*call.Panic](reply.Err); ok {
		x.panicked = v
	}
	x.step = x.steps.Answered(reply)
	if x.err = reply.Err; x.step.Do == Again {
		x.again = reply
	}
}

// pause waits before the command is sent again, or gives up.
func (x *exit) pause(ctx context.Context) {
	reply := x.again
	x.again = call.Reply{}
	if reply.Err != nil {
		if x.within = x.tries.Next(ctx, &reply); x.within == 0 {
			x.err = reply.Err
			x.step = x.steps.GiveUp(x.room.Port.Clock.Read())
			return
		}
	}
	x.next()
}

// next goes on now.
func (x *exit) next() {
	x.now = x.room.Port.Clock.Read()
	x.step = x.steps.Next(x.now)
}
