package contend

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/hold"
)

// Left is told, once, what the end of a hold has come to: the error of the last command, and the panic of a client, if there were any.
type Left interface {
	Left(o hold.Outcome, err error, panicked *call.Panic)
}

// End ends h, whose work was told before. The first command goes out on the caller's goroutine if nothing can delay it there. Everything
// else happens on a goroutine that outlives ctx. to is told either before End returns, or from there.
func (r *Room) End(ctx context.Context, h *hold.Hold, left claim.Left, to Left) {
	now := r.Port.Clock.Read()
	x := exit{room: r, steps: r.NewLeaver(lineOf(h), h, left), to: to}
	x.step = x.steps.Next(now)
	if x.step.Do == Over || ctx.Err() == nil && r.Port.Inline(ctx, now.Awake()) {
		if x.run(ctx, true) {
			return
		}
	}
	rest := x
	r.Port.Tasks.Go(func() { rest.run(context.WithoutCancel(ctx), false) })
}

// exit carries out the steps of one Leaver.
type exit struct {
	room     *Room
	steps    *Leaver
	to       Left
	step     Step
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
			x.to.Left(s.Outcome, x.err, x.panicked)
			return true
		case Idle:
			if once {
				x.step = Step{Do: Again}
				return false
			}
			if idle := x.steps.Idle(); idle != nil {
				<-idle
			}
			x.step = x.steps.Next(x.room.Port.Clock.Read())
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
	p := x.room.Port
	now := p.Clock.Read()
	if x.within == 0 {
		x.tries = p.Tries(now, s.For)
		x.within = x.tries.First(ctx)
	}
	reply := x.room.Desk.Release(ctx, s.Ask, now, x.within)
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
	reply, now := x.again, x.room.Port.Clock.Read()
	x.again = call.Reply{}
	if reply.Err != nil {
		x.within = x.tries.Next(ctx, &reply)
		now = x.room.Port.Clock.Read()
		if x.within == 0 {
			x.err = reply.Err
			x.step = x.steps.GiveUp(now)
			return
		}
	}
	x.step = x.steps.Next(now)
}
