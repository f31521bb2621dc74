package contend

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
)

// End ends h, whose work was told before. It returns once that is over, or when ctx has ended and a little longer; then known is false.
func (r *Room) End(ctx context.Context, h *hold.Hold, left claim.Left) (o hold.Outcome, known bool) {
	line, _ := h.Line.(*Line)
	l := r.NewLeaver(line, h, left)
	now := r.Port.Clock.Read()
	s := l.Next(now)
	r.Do(s)
	if s.Do == Send && r.Port.Can.Punctual { // mostly all is done by that
		s = l.Answered(r.release(ctx, s, now, s.For/2))
		r.Do(s)
	}
	if s.Do == Over {
		return s.Outcome, true
	}
	return r.finish(ctx, l, s)
}

func (r *Room) release(ctx context.Context, s Step, now clock.Reading, within time.Duration) call.Reply {
	if ctx.Done() != nil {
		ctx = context.WithoutCancel(ctx)
	}
	return r.Desk.Release(ctx, s.Ask, now, within)
}

// finish carries out the rest of an end, which goes on if ctx ends.
func (r *Room) finish(ctx context.Context, l *Leaver, s Step) (hold.Outcome, bool) {
	done := make(chan hold.Outcome, 1)
	r.Port.Tasks.Go(func() { done <- r.rest(context.WithoutCancel(ctx), l, s) })
	select {
	case o := <-done:
		return o, true
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case o := <-done:
		return o, true
	case <-timer.C:
		return hold.Outcome{}, false
	}
}

// grace is how long an end waits after the end of its ctx for an answer that is already on its way.
const grace = 40 * time.Millisecond

func (r *Room) rest(ctx context.Context, l *Leaver, s Step) hold.Outcome {
	began := r.Port.Clock.Now()
	for pause := firstRest / 4; s.Do != Over; pause *= 2 {
		switch s.Do {
		case Idle:
			if idle := l.Idle(); idle != nil {
				<-idle
			}
			s = l.Next(r.Port.Clock.Read())
		case Send:
			now := r.Port.Clock.Read()
			s = l.Answered(r.release(ctx, s, now, s.For/2))
		default:
			if r.Port.Clock.Now().Sub(began) >= l.Patience() {
				s = l.GiveUp(r.Port.Clock.Read())
				break
			}
			call.Sleep(ctx, pause-jitter(pause))
			s = l.Next(r.Port.Clock.Read())
		}
		r.Do(s)
	}
	return s.Outcome
}

// Lost implements hold.Keeper.
func (r *Room) Lost(h *hold.Hold) {
	line, _ := h.Line.(*Line)
	s := r.Place.Lost(line, h, r.Port.Clock.Read())
	r.Do(s)
}
