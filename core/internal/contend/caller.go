package contend

import (
	"errors"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
)

// Caller is one call that wants a hold.
//
//	for s := c.Next(now); s.Do != Over; {
//		Send: s = c.Answered(reply, gone)
//		Listen: s = c.Told(word), or c.Leave(err)
//		Watch: s = c.Next(now), or c.Late(err)
//	}
//
// If the last step has both a Hold and an Err, the hold came as its caller left: it has to be given back.
type Caller struct {
	place *Place
	Waiting
	Once bool // does not wait for another holder

	line   *Line
	hold   *hold.Hold // that its own attempt asks for
	waiter Waiter
}

// NewCaller returns a call that begins at now.
func (p *Place) NewCaller(now clock.Awake, w *hold.Want, once bool) *Caller {
	c := new(Caller)
	c.begin(p, Waiting{Want: w, Began: now}, once)
	return c
}

// begin makes c a new call. If it was another one before, that is over.
func (c *Caller) begin(p *Place, w Waiting, once bool) {
	*c = Caller{place: p, Waiting: w, Once: once, waiter: Waiter{Of: w, Told: c.waiter.Told}}
}

// Next begins, or goes on after a change of the line.
func (c *Caller) Next(now clock.Awake) Step {
	if c.Once {
		return c.try(now)
	}
	line, waits, has := c.place.Table.Enter(Key(c.Want), c.Want.Together(), &c.waiter)
	if c.line = line; waits {
		return Step{Do: Listen, Hold: has}
	}
	return c.ask()
}

// ask is an attempt of the call's own.
func (c *Caller) ask() Step {
	c.hold = hold.New(c.Want.Name, &c.place.Site)
	return Step{Do: Send, Op: call.Acquire, Claim: &c.hold.Claim, Want: c.Want, For: driver.Patience(c.Want.TTL)}
}

// try asks, or finds out from those of this process who have the name or ask for it. What they were told counts only if they
// were as patient.
func (c *Caller) try(now clock.Awake) Step {
	k := Key(c.Want)
	line, asks := c.place.Table.Try(k, c.Want.Together())
	if asks {
		c.line = line
		return c.ask()
	}
	v := c.place.Table.Watch(k)
	patience := driver.Patience(c.Want.TTL)
	switch {
	case v.Held:
		return Step{Do: Over, Err: here(now, v.Has)}
	case v.Known && v.News.Held != nil:
		return Step{Do: Over, Err: &Held{Held: v.News.Held}}
	case v.Known && v.News.Patient >= patience:
		return Step{Do: Over, Err: v.News.Err}
	case v.Changed == nil: // they are gone
		return Step{Do: Again}
	default:
		return Step{Do: Watch, Changed: v.Changed, For: patience - now.Sub(c.Began)}
	}
}

// Answered takes the outcome of the call's own attempt. gone is why its caller goes, if he does.
func (c *Caller) Answered(r call.Reply, gone error) Step {
	m := r.Meaning()
	switch {
	case m.Kind == driver.Done && hold.Fresh(r, c.Want.TTL):
		return c.granted(r, gone)
	case m.Kind == driver.Done:
		c.hold.Claim.Owned() // the same token asks again, for all of it
	}
	if err := c.why(r, m, gone); err != nil {
		return c.goes(r, err)
	}
	return c.waits(r, m)
}

// granted makes a hold.
func (c *Caller) granted(r call.Reply, gone error) Step {
	own, s := granted(c.hold, r)
	s.Do, s.Err = Over, gone
	var start bool
	s.Hold, start = c.line.Granted(func() *hold.Hold { own.Begin(r, c.Want.TTL, c.Want); return own })
	if start {
		s.Start = c.place.newAsker(c.line, c.Want.Name, nil, r.Now.Awake())
	}
	return s
}

// why is the error of a call that goes after this outcome; nil if it waits.
func (c *Caller) why(r call.Reply, m driver.Meaning, gone error) error {
	_, panicked := errors.AsType[*call.Panic](r.Err)
	switch {
	case m.Kind == driver.HeldBy && c.Once:
		return &Held{Held: m.Held}
	case m.Kind == driver.Marked, m.Refused, panicked:
		return r.Err
	case gone != nil:
		return gone
	case c.Once && r.Err == nil:
		return ErrSilent
	case c.Once:
		return r.Err
	default:
		return nil
	}
}

// waits puts the call into its line, first of all, and the asker goes on with its claim.
func (c *Caller) waits(r call.Reply, m driver.Meaning) Step {
	heard := r.Now.Awake()
	if !m.Answered() {
		heard = c.Began
	}
	s := Step{Do: Listen}
	if c.line.Refused(&c.waiter) {
		s.Start = c.place.newAsker(c.line, c.Want.Name, c.hold, heard)
	} else {
		s.Behind, s.Clean = &c.hold.Claim, c.hold.Claim.Drop(r.Now.Awake())
	}
	if m.Held != nil {
		c.line.Tell(News{Held: m.Held, At: heard})
	}
	return s
}

// goes ends the call with err. If others wait, the asker goes on with its claim.
func (c *Caller) goes(r call.Reply, err error) Step {
	s := Step{Do: Over, Err: err}
	if c.line.GaveUp() {
		s.Start = c.place.newAsker(c.line, c.Want.Name, c.hold, r.Now.Awake())
	} else {
		s.Behind, s.Clean = &c.hold.Claim, c.hold.Claim.Drop(r.Now.Awake())
	}
	return s
}

// Words has the word that ends the wait.
func (c *Caller) Words() <-chan Word { return c.waiter.Told }

// Told takes the word that ends the wait.
func (c *Caller) Told(w Word) Step { return Step{Do: Over, Hold: w.Hold, Err: w.Err} }

// Leave ends the wait because of err. broken, unless it is nil, has to be called.
func (c *Caller) Leave(err error) (s Step, broken func()) {
	word, told, broken := c.waiter.Leave(c.place.Table)
	s = Step{Do: Over, Err: err}
	if told {
		s.Hold = word.Hold
	}
	return s, broken
}

func here(now clock.Awake, h *hold.Hold) *Held {
	return &Held{&driver.Held{Label: h.Want().Label, Remaining: h.Remaining(now)}, h}
}
