package contend

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
	"github.com/holdfast-go/holdfast/core/internal/queue"
)

// Asker stands in the backend's queue for everybody of this process who waits for a name, with one token, until that is granted.
// Waiters come and go, and it sends nothing for that. Each round carries the wish of whoever is first as it begins.
//
//	for s := a.Next(now, broken); s.Do != Over; {
//		Send: s = a.Answered(reply)
//		Pause, Again: s = a.Next(now, broken)
//	}
type Asker struct {
	place *Place
	line  *Line
	name  string
	hold  *hold.Hold // that it asks for
	want  *hold.Want // of the round under way

	heard   clock.Awake   // when the service has answered last, or before the asker began
	bound   time.Duration // of the round under way
	patient time.Duration // the longest bound of a command since then that had no answer
	fails   int           // how many rounds in a row had no answer
	rest    time.Duration // before the next round
	again   bool          // the grant did not suit, and the same token asks again
	got     *call.Reply   // a grant without the service, which is still to be given
}

// newAsker returns an asker that goes on with h, if that is not nil.
func (p *Place) newAsker(l *Line, name string, h *hold.Hold, heard clock.Awake) *Asker {
	return &Asker{place: p, line: l, name: name, hold: h, heard: heard}
}

// Next begins a round. broken is called if nobody waits any more before it is over.
func (a *Asker) Next(now clock.Awake, broken func()) Step {
	if a.got != nil {
		r := *a.got
		a.got = nil
		return a.granted(r)
	}
	if a.place.Closed.Load() {
		a.line.Fail(func(Waiting) error { return ErrClosed })
	}
	w, behind, ok := a.line.First(broken)
	switch {
	case !ok:
		s := a.drop(now)
		s.Do = Over
		return s
	case a.hold != nil && !a.hold.Claim.May(&w.Want.Wish), a.hold != nil && a.hold.Claim.Stuck(now):
		return a.drop(now) // before a rest: what it is granted late is given back at once
	case a.rest > 0:
		rest := a.rest
		a.rest = 0
		return Step{Do: Pause, For: rest}
	case a.hold == nil:
		a.hold = hold.New(a.name, &a.place.Site)
	}
	a.want = w.Want
	s := Step{Do: Send, Op: call.Wait, Claim: &a.hold.Claim, Want: a.want, Fences: a.place.fences(a.want, behind), For: a.place.round(a.want.TTL, a.fails)}
	if a.again {
		s.Op, s.For = call.Acquire, driver.Patience(a.want.TTL)
	}
	a.bound = s.For
	return s
}

// drop ends the claim.
func (a *Asker) drop(now clock.Awake) Step {
	s := Step{Do: Again}
	if a.hold != nil {
		s.Behind, s.Clean = &a.hold.Claim, a.hold.Claim.Drop(now)
	}
	a.hold, a.again = nil, false
	return s
}

// Heard takes an answer to a look of the round under way that is no grant.
func (a *Asker) Heard(now clock.Awake, h *driver.Held) {
	a.line.Tell(News{Held: h, At: now})
}

// Answered takes the outcome of a round, which may have been broken off.
func (a *Asker) Answered(r call.Reply, broken bool) Step {
	now, m := r.Now.Awake(), r.Meaning()
	if m.Answered() {
		a.heard, a.patient, a.fails = now, 0, 0
	}
	switch m.Kind {
	case driver.Done:
		return a.granted(r)
	case driver.HeldBy:
		a.line.Tell(News{Held: m.Held, At: now})
	case driver.Marked:
		scope := a.want.Scope
		a.line.Fail(func(w Waiting) error {
			if w.Want.Dedup > 0 && w.Want.Scope == scope {
				return r.Err
			}
			return nil
		})
	default:
		if !broken {
			a.silent(now, r.Err, m)
		}
	}
	return Step{Do: Again}
}

// silent is for a round without an answer. What ends one wish alone is told to whoever has it; others may fare better. The rest is told
// to all who have waited for a TTL since the last answer, once a command had their patience.
func (a *Asker) silent(now clock.Awake, err error, m driver.Meaning) {
	_, panicked := errors.AsType[*call.Panic](err)
	if m.Refused || panicked {
		a.line.Fail(func(w Waiting) error {
			if w.Want == a.want {
				return err
			}
			return nil
		})
	}
	if !m.Refused {
		a.patient = max(a.patient, a.bound)
		a.fails++
		a.line.Tell(News{Err: err, At: now, Patient: a.patient})
		a.line.Fail(func(w Waiting) error {
			since := now.Sub(max(a.heard, w.Began))
			if since >= w.Want.TTL && a.patient >= driver.Recheck(w.Want.TTL) {
				return err
			}
			return nil
		})
	}
	a.rest = min(firstRest<<min(a.fails, 8), lastRest)
}

const (
	firstRest = 12 * time.Millisecond
	lastRest  = time.Second
)

// granted gives what was granted to whoever is first now. If it does not suit, the same token asks again with his wish, once; then it
// goes to the first whom it suits, or is released.
func (a *Asker) granted(r call.Reply) Step {
	ttl := a.want.TTL
	if !hold.Fresh(r, ttl) { // the same token asks again, for all of it
		a.hold.Claim.Owned()
		return Step{Do: Again}
	}
	if r.Grant.Degraded != "" && a.hold.Claim.Outage() == nil { // by itself, and the claim for the service is dropped first
		own, s := granted(a.hold, r)
		s.Do, a.hold, a.got, a.again = Again, own, &r, true
		return s
	}
	h := a.hold
	gift, more := a.line.Give(a.again, func(w Waiting) (*hold.Hold, bool) {
		if w.Want.Wish != a.want.Wish && !a.want.Alike(&w.Want.Wish) {
			return nil, false
		}
		h.Begin(r, ttl, w.Want)
		return h, true
	})
	switch {
	case gift == queue.Given:
		a.hold, a.again = nil, false
		if more {
			return Step{Do: Again}
		}
		return Step{Do: Over}
	case gift == queue.Nobody, a.again:
		s := a.giveBack(r.Now.Awake())
		if gift == queue.Nobody {
			s.Do = Over
		}
		return s
	}
	h.Claim.Owned()
	a.again = true
	return Step{Do: Again}
}

// giveBack releases what was granted.
func (a *Asker) giveBack(now clock.Awake) Step {
	s := Step{Do: Again, Behind: &a.hold.Claim, Clean: a.hold.Claim.GiveBack(now)}
	a.hold, a.again = nil, false
	return s
}
