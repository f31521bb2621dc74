package contend

import (
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
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
	hold  *hold.Hold // that it asks for
	want  *hold.Want // of the round under way

	heard   clock.Awake   // when the service has answered last, or before the asker began
	bound   time.Duration // of the round under way
	patient time.Duration // the longest bound of a command since then that had no answer
	fails   int           // how many rounds in a row had no answer
	rest    time.Duration // before the next round
	again   bool          // the grant did not suit, and the same token asks again
}

// newAsker returns an asker that goes on with h.
func (p *Place) newAsker(l *Line, h *hold.Hold, heard clock.Awake) *Asker {
	return &Asker{place: p, line: l, hold: h, heard: heard}
}

// Next begins a round. broken is called if nobody waits any more before it is over.
func (a *Asker) Next(now clock.Awake, broken func()) Step {
	w, behind, ok := a.line.First(broken)
	switch {
	case !ok:
		s := a.drop(now)
		s.Do = Over
		return s
	case a.hold.Claim.Outage() != nil, !a.hold.Claim.May(&w.Want.Wish, now):
		return a.drop(now) // before a rest: what it is granted late is given back at once
	case a.rest > 0:
		rest := a.rest
		a.rest = 0
		return Step{Do: Pause, For: rest}
	}
	a.want, a.bound = w.Want, a.place.round(w.Want.TTL, a.fails)
	return Step{Do: Send, Claim: &a.hold.Claim, Want: a.want, Fences: a.place.fences(a.want, behind), For: a.bound}
}

// drop ends the claim.
func (a *Asker) drop(now clock.Awake) Step {
	s := Step{Do: Again, Behind: &a.hold.Claim, Clean: a.hold.Claim.Drop(now)}
	a.anew()
	return s
}

// anew begins another claim.
func (a *Asker) anew() { a.hold, a.again = hold.New(a.hold.Claim.Name, &a.place.Site), false }

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
	case driver.HeldBy: // Heard was told, when it was new
	case driver.Marked:
		a.line.Fail(func(w Waiting) error {
			if w.Want.Dedup > 0 && w.Want.Scope == a.want.Scope {
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
	if m.Refused || call.Panicked(err) {
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
// goes to the first whom it suits, or is released. If nobody waits, Next releases it.
func (a *Asker) granted(r call.Reply) Step {
	ttl := a.want.TTL
	if !hold.Fresh(r, ttl) { // the same token asks again, for all of it
		return Step{Do: Again}
	}
	own, s := granted(a.hold, r)
	a.hold, s.Do = own, Again
	given := a.line.Give(a.again, func(w Waiting) (*hold.Hold, bool) {
		if w.Want.Wish != a.want.Wish && !a.want.Alike(&w.Want.Wish) {
			return nil, false
		}
		own.Begin(r, ttl, w.Want)
		return own, true
	})
	switch {
	case given:
		if s.Do = Over; a.want.Together() { // more may have it
			s.Do = Again
			a.anew()
		}
	case a.again && s.Behind == nil:
		return a.drop(r.Now.Awake())
	default: // what was granted without the service, Next drops
		a.again = true
	}
	return s
}
