package contend

import (
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
	"github.com/holdfast-go/holdfast/core/internal/term"
)

// Leaver ends one hold, after the contexts of its work have ended. Without a command, it goes to the first waiter of this process.
// Otherwise it is released; where a waiter hears of that, the asker begins while the release is on its way, because whichever is first,
// other processes that wait are served first.
//
//	for s := l.Next(now); s.Do != Over; {
//		Send: s = l.Answered(reply)
//		Idle: wait for l.Idle(); s = l.Next(now)
//	}
type Leaver struct {
	place  *Place
	line   *Line
	hold   *hold.Hold
	left   claim.Left
	ending hold.Ending
	begun  bool
}

// NewLeaver returns the end of h, which is in l, the line of its name. left is how its release is to leave the name.
func (p *Place) NewLeaver(l *Line, h *hold.Hold, left claim.Left) *Leaver {
	return &Leaver{place: p, line: l, hold: h, left: left}
}

// Next begins, or goes on.
func (l *Leaver) Next(now clock.Reading) Step {
	var s Step
	if !l.begun {
		l.begun = true
		passed, start := l.pass(now)
		if passed {
			return Step{Do: Over}
		}
		if start {
			l.place.used(l.hold.Turns())
			s.Start = l.place.newAsker(l.line, l.hold.Want().Name, nil, now.Awake())
		}
		var loss term.Loss
		var ok bool
		if l.ending, loss, ok = l.hold.End(now, l.left); !ok {
			s.Do, s.Outcome = Over, hold.Outcome{Result: term.WasLost, Loss: loss}
			return s
		}
	}
	if l.ending.Idle() != nil {
		s.Do = Idle
		return s
	}
	ask, bound, ok := l.ending.Send(now)
	if !ok {
		o := l.over(now)
		o.Start = either(s.Start, o.Start)
		return o
	}
	s.Do, s.Op, s.Claim, s.Ask, s.For = Send, call.Release, l.hold.Claim, ask, bound
	return s
}

// pass gives the hold to the first waiter, unless its release is to leave something behind.
func (l *Leaver) pass(now clock.Reading) (passed, start bool) {
	return l.line.Pass(l.hold, l.place.Can.Hears, func(w *Waiting) bool {
		return l.left == (claim.Left{}) && !l.place.Closed.Load() && l.hold.Next(now, w.Want)
	})
}

// Answered takes the outcome of a command.
func (l *Leaver) Answered(r call.Reply) Step {
	if l.ending.Answered(r.Meaning()) {
		return Step{Do: Again}
	}
	return l.over(r.Now)
}

// over is the end: the name is free, or comes free with its TTL.
func (l *Leaver) over(now clock.Reading) Step {
	s := Step{Do: Over, Behind: l.hold.Claim, Outcome: l.ending.Over(now)}
	s.Clean = s.Outcome.Cleanup
	if l.line.Vacate(l.hold) {
		s.Start = l.place.newAsker(l.line, l.hold.Want().Name, nil, now.Awake())
	}
	return s
}

// Idle is closed when Next may go on.
func (l *Leaver) Idle() <-chan struct{} { return l.ending.Idle() }

// Lost is what has to be done for a hold that was lost, after its contexts have ended.
func (p *Place) Lost(l *Line, h *hold.Hold, now clock.Reading) Step {
	s := Step{Do: Over, Behind: h.Claim, Clean: h.Ended(now)}
	if l.Vacate(h) {
		s.Start = p.newAsker(l, h.Want().Name, nil, now.Awake())
	}
	return s
}

func either(a, b *Asker) *Asker {
	if a != nil {
		return a
	}
	return b
}

// Patience is how long the release may take.
func (l *Leaver) Patience() time.Duration { return driver.Patience(l.hold.Want().Lifetime()) }

// GiveUp ends a release that has had no answer for long enough.
func (l *Leaver) GiveUp(now clock.Reading) Step { return l.over(now) }
