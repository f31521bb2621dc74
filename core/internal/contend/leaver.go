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
	Ask     driver.Claim // what to send
	Outcome hold.Outcome // in the end

	place  *Place
	hold   *hold.Hold
	left   claim.Left
	ending hold.Ending
	begun  bool
}

// NewLeaver returns the end of h. left is how its release is to leave the name.
func (p *Place) NewLeaver(h *hold.Hold, left claim.Left) Leaver {
	return Leaver{place: p, hold: h, left: left}
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
		if start != nil {
			life := l.hold.Term()
			l.place.used(life.Turns())
			s.Start = l.place.newAsker(start, hold.New(l.hold.Claim.Name, &l.place.Site), now.Awake())
		}
		var loss term.Loss
		var ok bool
		if l.ending, loss, ok = l.hold.End(now, l.left); !ok {
			s.Do, l.Outcome = Over, hold.Outcome{Result: term.WasLost, Loss: loss}
			return s
		}
	}
	if l.ending.Idle() != nil {
		s.Do = Idle
		return s
	}
	ask, bound, ok := l.ending.Send(now)
	if !ok { // and that was not so as the end began
		return l.over(now)
	}
	l.Ask = ask
	s.Do, s.For = Send, bound
	return s
}

// pass gives the hold to the first waiter, unless its release is to leave something behind.
func (l *Leaver) pass(now clock.Reading) (passed bool, start *Line) {
	return l.place.Table.Pass(Key(l.hold.Want()), l.hold, l.place.Can.Hears, func(w Waiting) bool {
		return l.left == (claim.Left{}) && l.hold.Next(now, w.Want)
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
	l.Outcome = l.ending.Over(now)
	return l.place.vacate(l.hold, l.Outcome.Cleanup, now)
}

// vacate is the end of a hold that is over.
func (p *Place) vacate(h *hold.Hold, clean claim.Cleanup, now clock.Reading) Step {
	s := Step{Do: Over, Behind: &h.Claim, Clean: clean}
	if start := p.Table.Vacate(Key(h.Want()), h); start != nil {
		s.Start = p.newAsker(start, hold.New(h.Claim.Name, &p.Site), now.Awake())
	}
	return s
}

// Idle is closed when Next may go on.
func (l *Leaver) Idle() <-chan struct{} { return l.ending.Idle() }

// Lost is what has to be done for a hold that was lost, after its contexts have ended.
func (p *Place) Lost(h *hold.Hold, now clock.Reading) Step { return p.vacate(h, h.Ended(now), now) }

// Patience is how long the release may take.
func (l *Leaver) Patience() time.Duration { return driver.Patience(l.hold.Want().TTL) }

// GiveUp ends a release that has had no answer for long enough.
func (l *Leaver) GiveUp(now clock.Reading) Step { return l.over(now) }
