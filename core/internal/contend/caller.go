package contend

import (
	"time"

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
// The last step has a Hold or an Err. The hold may have come as the call's caller left: then it has to be given back.
type Caller struct {
	place *Place
	Waiting
	Once bool // does not wait for another holder

	line   *Line
	hold   *hold.Hold    // that its own attempt asks for
	within time.Duration // that may take
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
	return c.ask(driver.Patience(c.Want.TTL))
}

// ask is an attempt of the call's own, for within at most.
func (c *Caller) ask(within time.Duration) Step {
	c.hold, c.within = hold.New(c.Want.Name, &c.place.Site), within
	return Step{Do: Send, Claim: &c.hold.Claim, Want: c.Want, For: within}
}

// try asks, or finds out from those of this process who have the name or ask for it. What they were told counts only if they
// were as patient. All this takes no longer than an attempt.
func (c *Caller) try(now clock.Awake) Step {
	patience := driver.Patience(c.Want.TTL)
	left := patience - now.Sub(c.Began)
	if c.line != nil {
		if err := c.shares(c.line.Outcome(), patience); err != nil {
			return Step{Do: Over, Err: err}
		}
	}
	if left <= 0 {
		return Step{Do: Over, Err: ErrSilent}
	}
	line, v, asks := c.place.Table.Try(Key(c.Want), c.Want.Together())
	if c.line = line; asks {
		return c.ask(left)
	}
	switch {
	case v.Held:
		return Step{Do: Over, Err: v.Has.Held(now)}
	case v.Known && v.News.Held != nil:
		return Step{Do: Over, Err: v.News.Held}
	case v.Known && v.News.Patient >= patience:
		return Step{Do: Over, Err: v.News.Err}
	default:
		return Step{Do: Watch, Changed: v.Changed, For: left}
	}
}

// shares is the outcome of an attempt that the call has watched, if it is the call's too: so those who come at once do not ask one after
// the other. An answer has to be to a command that was sent after the call began: an earlier one may have seen what is over since.
func (c *Caller) shares(n News, patience time.Duration) error {
	switch {
	case n.Answered && n.Asked > c.Began && n.Want.Wish == c.Want.Wish:
		return n.Err
	case !n.Answered && n.At >= c.Began && n.Patient >= patience:
		return n.Err
	default:
		return nil
	}
}

// outcome is what those who have watched the call's own attempt learn of it, as it gives up.
func (c *Caller) outcome(r call.Reply, m driver.Meaning, gone error) (n News) {
	if gone == nil && !call.Panicked(r.Err) {
		n = News{At: r.Now.Awake(), Err: r.Err, Patient: c.within, Want: c.Want, Asked: r.Asked.Awake(), Answered: m.Answered() || m.Refused}
	}
	return n
}

// Answered takes the outcome of the call's own attempt. gone is why its caller goes, if he does.
func (c *Caller) Answered(r call.Reply, gone error) Step {
	m := r.Meaning()
	if m.Kind == driver.Done && hold.Fresh(r, c.Want.TTL) { // otherwise the same token asks again, for all of it
		return c.granted(r)
	}
	if err := c.why(r, m, gone); err != nil {
		s := c.leaves(c.line.GaveUp(c.outcome(r, m, gone)), r.Now.Awake(), r.Now.Awake())
		c.tell(m, r.Now.Awake())
		s.Do, s.Err = Over, err
		return s
	}
	return c.waits(r, m)
}

// granted makes a hold.
func (c *Caller) granted(r call.Reply) Step {
	own, s := granted(c.hold, r)
	s.Do = Over
	s.Hold = c.line.Granted(func() *hold.Hold { own.Begin(r, c.Want.TTL, c.Want); return own })
	return s
}

// why is the error of a call that goes after this outcome; nil if it waits.
func (c *Caller) why(r call.Reply, m driver.Meaning, gone error) error {
	switch {
	case m.Kind == driver.Marked, m.Refused, call.Panicked(r.Err):
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
	s := c.leaves(c.line.Refused(&c.waiter), heard, r.Now.Awake())
	s.Do = Listen
	c.tell(m, heard)
	return s
}

// tell has those who wait know who has the name, if the call has heard it.
func (c *Caller) tell(m driver.Meaning, heard clock.Awake) {
	if m.Held != nil {
		c.line.Tell(News{Held: m.Held, At: heard})
	}
}

// leaves has an asker that starts go on with the call's claim. Without one it is dropped.
func (c *Caller) leaves(start bool, heard, now clock.Awake) (s Step) {
	if start {
		s.Start = c.place.newAsker(c.line, c.hold, heard)
	} else {
		s.Behind, s.Clean = &c.hold.Claim, c.hold.Claim.Drop(now)
	}
	return s
}

// Words has the word that ends the wait.
func (c *Caller) Words() <-chan Word { return c.waiter.Told }

// Told takes the word that ends the wait.
func (c *Caller) Told(w Word) Step { return Step{Do: Over, Hold: w.Hold, Err: w.Err} }

// Leave ends the wait because of err, unless it was given a hold. broken, unless it is nil, has to be called.
func (c *Caller) Leave(err error) (s Step, broken func()) {
	word, broken := c.waiter.Leave(c.place.Table)
	if word.Hold != nil {
		err = nil
	}
	return Step{Do: Over, Hold: word.Hold, Err: err}, broken
}
