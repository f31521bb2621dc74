package contend

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
)

// ask carries out an asker.
func (r *Room) ask(a *Asker) {
	heard := func(h *driver.Held) { a.Heard(r.Port.Clock.Now(), h) }
	for {
		ctx, broken := context.WithCancel(r.life)
		s := a.Next(r.Port.Clock.Now(), broken)
		for s.Do == Pause || s.Do == Send {
			s = r.round(ctx, a, s, heard)
		}
		broken()
		r.Do(s)
		if s.Do == Over {
			return
		}
	}
}

// round carries out one step of an asker.
func (r *Room) round(ctx context.Context, a *Asker, s Step, heard func(*driver.Held)) Step { //nolint:contextcheck // the values of the caller whose wish it is
	if s.Do == Pause {
		call.Sleep(ctx, s.For-jitter(s.For))
		return Step{Do: Again}
	}
	began := r.Port.Clock.Read()
	if values := s.Want.Work.Values(); values != nil {
		ctx = valued{ctx, values}
	}
	var rep call.Reply
	if s.Op == call.Acquire {
		rep = r.Desk.Acquire(ctx, s.Claim, &s.Want.Wish, s.Fences, began, s.For)
	} else {
		rep = r.Desk.Wait(ctx, s.Claim, &s.Want.Wish, s.Fences, s.For, heard)
	}
	return a.Answered(rep, ctx.Err() != nil)
}

// jitter is up to a quarter of d.
func jitter(d time.Duration) time.Duration {
	return rand.N(max(d/4, 1)) //nolint:gosec // G404: jitter is no secret
}

// valued is a context with the values of another one.
type valued struct {
	context.Context
	values context.Context
}

func (v valued) Value(key any) any { return v.values.Value(key) }
