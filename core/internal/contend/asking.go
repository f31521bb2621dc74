package contend

import (
	"context"
	"math/rand/v2"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
)

// ask carries out an asker.
func (r *Room) ask(a *Asker) {
	heard := func(h *driver.Held) { a.Heard(r.Port.Clock.Now(), h) }
	for {
		if r.life.Err() != nil { // they go by themselves; until then each round would be broken off at once
			a.line.Fail(func(Waiting) error { return ErrClosed })
		}
		ctx, broken := context.WithCancel(r.life)
		s := a.Next(r.Port.Clock.Now(), broken)
		switch s.Do {
		case Pause:
			call.Sleep(ctx, s.For-rand.N(s.For/4)) //nolint:gosec // G404: jitter is no secret
		case Send:
			s = r.round(ctx, a, s, heard)
		default:
		}
		broken()
		r.Do(s)
		if s.Do == Over {
			return
		}
	}
}

// round sends one command of an asker.
func (r *Room) round(ctx context.Context, a *Asker, s Step, heard func(*driver.Held)) Step { //nolint:contextcheck // the values of the caller whose wish it is
	if values := s.Want.Work.Values(); values != nil {
		ctx = valued{ctx, values}
	}
	reply := r.Desk.Wait(ctx, s.Claim, &s.Want.Wish, s.Fences, s.For, heard)
	return a.Answered(reply, ctx.Err() != nil)
}

// valued is a context with the values of another one.
type valued struct {
	context.Context
	values context.Context
}

func (v valued) Value(key any) any { return v.values.Value(key) }
