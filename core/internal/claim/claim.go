package claim

import (
	"cmp"
	"crypto/rand"
	"encoding/base64"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// Claim is one token.
//
// The interleavings behind it. A reply is lost, and the same token asks again: there is one token for all tries, so what
// the first one was granted is found by the next. A lost command is executed after all:
//
//   - while the token asks: the next command finds it, so nothing is done;
//   - while the name is held: it grants what is held already, so nothing is done. That is why another TTL is asked
//     for only while nothing is open: a late command with a short TTL would cut a long one;
//   - during the release, before or after it: the release may have come first, so it is looked at again;
//   - after the end: it is cleaned up.
//
// A clean-up may overtake the command behind which it cleans up. So it is repeated, for the longest TTL that
// was sent: see package sweep.
type Claim struct {
	Name  string
	token string
	desk  *Desk // that sends; nil if somebody plays

	mu     sync.Mutex // protects the fields below; a leaf
	phase  phase
	placed bool          // it may stand in the queue, or owns the name and no hold has it; no release was answered since
	first  bool          // before the last command that asked, the token stood nowhere
	open   int32         // how many commands may act without our knowledge: under way, or given up
	renews int32         // how many renewals may act: they only prolong what the token owns
	sent   time.Duration // TTL of the last command that asked
	rare   *rare         // made when something of it is set
}

// rare is what few claims have: a process can hold very many.
type rare struct {
	outage  error         // why the grant was made without the service
	gives   time.Duration // the most that a renewal gives; 0 if that has no bound
	keep    time.Duration // Keep of the last command that asked
	longer  time.Duration // the longest TTL that was sent, if the last one was shorter
	since   clock.Awake   // when the last command was given up
	settles int32         // how many of the open commands the next release settles: they are known to have acted
	waits   int32         // how many of them are Waits that were left behind and have not returned
	hung    clock.Awake   // when a Wait was left behind
}

// set is what few claims have, to be written to. The caller holds the mutex.
func (c *Claim) set() *rare {
	if c.rare == nil {
		c.rare = new(rare)
	}
	return c.rare
}

// get is what few claims have, to be read. The caller holds the mutex.
func (c *Claim) get() (r rare) {
	if c.rare != nil {
		r = *c.rare
	}
	return r
}

type phase uint8

const (
	asking phase = iota
	held         // in a hold
	ending       // in the release of that hold
	over
	kept // over, but it may still own the name for a while: MinHold, and no answer to its release
)

// Begin makes a token, which must stay secret, because whoever knows it can release the lock. The commands go through d.
func (c *Claim) Begin(name string, d *Desk) {
	var raw [16]byte
	_, _ = rand.Read(raw[:]) // never fails: crypto/rand ends the process instead
	var text [22]byte
	base64.RawURLEncoding.Encode(text[:], raw[:])
	c.Name, c.token, c.desk = name, string(text[:]), d
}

// Degraded makes own the claim of a grant g that was made without the service, for c. What c has asked the service for stays
// open. Only a release ends it: nothing else can end what no service knows.
func (c *Claim) Degraded(g driver.Grant, own *Claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	own.Name, own.token, own.desk, own.sent, own.placed = c.Name, g.Degraded, c.desk, c.longest(), true
	own.set().outage = cmp.Or(g.Outage, call.ErrNoAnswer)
}

// Outage is why the grant was made without the service; nil for all others.
func (c *Claim) Outage() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.get().outage
}

// May says whether the token may ask for w at now: with another TTL or Keep than before only while none of its commands is
// open. Otherwise a command that is stuck in the link could cut short what a later one was granted. If a Wait has hung for a
// TTL, it may not: whatever that has put into the queue is dead, and attempts find others first.
func (c *Claim) May(w *Wish, now clock.Awake) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	stuck := c.get().waits > 0 && now.Sub(c.rare.hung) >= c.longest()
	return !stuck && c.may(w.Lifetime(), w.keep())
}

func (c *Claim) may(ttl, keep time.Duration) bool {
	return c.open+c.renews == 0 || c.sent == ttl && c.get().keep == keep
}

// sends takes note of a TTL that is sent. The caller holds the mutex.
func (c *Claim) sends(ttl time.Duration) {
	if longest := c.longest(); ttl < longest {
		c.set().longer = longest
	}
	c.sent = ttl
}

// longest is the longest TTL that was sent. The caller holds the mutex.
func (c *Claim) longest() time.Duration { return max(c.sent, c.get().longer) }

// Ask is the claim for a command that asks for w. The command counts as open until its Answer.
func (c *Claim) Ask(op call.Op, w *Wish, fences int) driver.Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	ask := w.ask(c.Name, c.token)
	ask.Fences = fences
	c.first = !c.placed
	c.open++
	c.placed = c.placed || op == call.Wait
	c.sends(ask.TTL)
	if ask.Keep != c.get().keep {
		c.set().keep = ask.Keep
	}
	return ask
}

// Renewal is the claim for a renewal, with the TTL and label of w if they may be sent, and otherwise with the TTL that
// was sent last. It counts as open until it is Renewed.
func (c *Claim) Renewal(w *Wish, ttl time.Duration) driver.Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.may(ttl, c.get().keep) {
		ttl = c.sent
	}
	c.renews++
	c.sends(ttl)
	return driver.Claim{Name: c.Name, Token: c.token, Label: w.Label, TTL: ttl, Limit: w.Limit}
}

// Answer takes what is known of a command when its caller goes on, at now. It stays open if that is nothing.
func (c *Claim) Answer(now clock.Awake, m driver.Meaning) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m.Open() {
		c.set().since = max(c.rare.since, now)
	} else {
		c.open--
	}
	switch {
	case m.Kind == driver.Done:
		c.placed = true
	case m.Kind == driver.NotDone && c.first:
		c.placed = false
	}
}

// Renewed takes the answer to a renewal for ttl, and says what that has given. Without an answer it may still come: then no
// other TTL is sent.
func (c *Claim) Renewed(m driver.Meaning, ttl time.Duration) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !m.Open() {
		c.renews--
	}
	if gives := c.get().gives; gives > 0 {
		ttl = min(ttl, gives)
	}
	return ttl
}

// LeftBehind says that a Wait was left behind at now: it has not returned.
func (c *Claim) LeftBehind(now clock.Awake) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.set().waits++
	c.rare.hung = now
}

// Hangs says that a Wait was left behind, and has not returned by now. One for each claim is enough.
func (c *Claim) Hangs() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.get().waits > 0
}

// Outcome takes the outcome of a command after its caller has gone. It says whether to clean up at once. The
// command stays open in two cases: if it was granted while the token asks, because nobody else knows of that;
// and if it is a Wait without a grant, because the token may stand in the queue since, whatever was sent before. What
// is left in the queue by a hold, or during its release, is cleaned up after that.
func (c *Claim) Outcome(op call.Op, m driver.Meaning) (clean bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if op == call.Wait {
		c.set().waits--
	}
	granted := m.Kind == driver.Done
	switch {
	case m.Open():
		return false
	case op == call.Wait && !granted && m.Answered():
		c.placed = true
		return c.settled()
	case !granted, c.phase == held:
		c.open--
		return false
	case c.phase == ending:
		c.open--
		c.placed = true
		return false
	default:
		return c.settled()
	}
}

// settled says that a release from now on settles one more open command, if the claim is over. The caller holds the mutex.
func (c *Claim) settled() bool {
	if c.phase != over {
		return false
	}
	c.set().settles++
	return true
}

// Quiet says that no command may act without our knowledge.
func (c *Claim) Quiet() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open+c.renews == 0 && !c.placed
}

// Hold says that the token was granted, and that a hold has it now. gives is the most that a renewal gives; 0 if that has no bound.
func (c *Claim) Hold(gives time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase, c.placed = held, false
	if gives > 0 {
		c.set().gives = gives
	}
}
