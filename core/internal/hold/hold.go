// Package hold has one grant in this process: its life, its claim, and the work under it.
package hold

import (
	"context"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/term"
	"github.com/holdfast-go/holdfast/core/internal/watchdog"
)

// Want is what a caller wants. It does not change.
type Want struct {
	*Terms

	Name string
	Work Work
}

// Terms is how it wants a name: a wish for the backend, and what concerns this process only. Calls for many names share it.
type Terms struct {
	claim.Wish

	Turn term.Turn
}

// Work is what runs under a hold.
type Work interface {
	// Stop ends the contexts of the work, because trust has ended. It is called with the hold's mutex held, so it runs no code of
	// the user and asks the hold nothing.
	Stop(why term.Loss)
	// Values is a context for the client's hooks while the work is asked for: only its values are used. nil is for none.
	Values() context.Context
}

// Watch is who looks at holds when they are due: a watchdog.Dog.
type Watch interface {
	Watch(h *Hold)
	Set(h *Hold, at clock.Awake, early time.Duration)
	Leave(h *Hold)
}

// Site is what the holds of one process share.
type Site struct {
	Watch  Watch
	Keeper Keeper
	Desk   *claim.Desk // that sends; nil if somebody plays
}

// Keeper is whom a hold tells what happens to it by itself. It is called without a mutex held.
type Keeper interface {
	// Lost says that it is over. The contexts have ended.
	Lost(h *Hold)
	// Renewed says what came of a renewal.
	Renewed(h *Hold, took time.Duration, err error)
}

// Hold is one grant, and the claim that asks for it. Whoever ends its work ends the contexts first, and tells the hold then.
type Hold struct {
	Claim claim.Claim

	site  *Site
	entry watchdog.Entry // the watchdog's

	mu   sync.Mutex // protects the fields below
	term term.Term
	want *Want
	idle chan struct{} // closed when no renewal is under way; nil if nobody waits for that
}

// New returns what becomes the hold of a name, once its claim is granted. Begin follows then.
func New(name string, s *Site) *Hold {
	h := &Hold{site: s}
	h.Claim.Begin(name, s.Desk)
	return h
}

// Degraded is New for a grant that was made without the service, for h.
func (h *Hold) Degraded(g driver.Grant) *Hold {
	own := &Hold{site: h.site}
	h.Claim.Degraded(g, &own.Claim)
	return own
}

// Begin says that the claim was granted by r, for w, and has the hold watched. ttl is what was asked for: trust comes from what was sent,
// never from what the receiver wants.
func (h *Hold) Begin(r call.Reply, ttl time.Duration, w *Want) {
	h.Claim.Hold(r.Grant.Longest)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.want = w
	g := grant(r, ttl)
	if h.Claim.Outage() != nil && !w.NoRenewal {
		g.TTL = forever
	}
	h.term = term.New(g, h.turn(w.Turn))
	h.site.Watch.Watch(h)
	h.set()
}

// Entry implements watchdog.Watched.
func (h *Hold) Entry() *watchdog.Entry { return &h.entry }

// forever is how long a grant without the service lasts: nobody takes it away, and nobody needs to renew it.
const forever = 10 * 365 * 24 * time.Hour

// turn is t, without renewals if nobody needs them.
func (h *Hold) turn(t term.Turn) term.Turn {
	if h.Claim.Outage() != nil {
		t.Every = 0
	}
	return t
}

func grant(r call.Reply, ttl time.Duration) term.Grant {
	if r.Grant.TTL > 0 {
		ttl = min(ttl, r.Grant.TTL)
	}
	return term.Grant{Asked: r.Asked, Heard: r.Now, TTL: ttl, Fence: r.Grant.Fence, Fences: r.Grant.Fences}
}

// Fresh says that a grant is not nearly over as it is heard.
func Fresh(r call.Reply, ttl time.Duration) bool {
	if r.Grant.Degraded != "" { // it is not a matter of time
		return true
	}
	life := term.Trust(grant(r, ttl).TTL)
	return life-r.Now.Since(r.Asked) >= life/3
}

// set has the hold looked at when it is due. The caller holds the mutex.
func (h *Hold) set() {
	at, early := h.term.Due()
	h.site.Watch.Set(h, at, early)
}

// Next gives the next turn to w, without a command, if w wants nothing that a turn cannot give, and nothing about the hold is in
// doubt. It is called with the queue's mutex held.
func (h *Hold) Next(now clock.Reading, w *Want) bool {
	if !h.Claim.Quiet() {
		return false
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	due, _ := h.term.Due()
	if !h.want.Alike(&w.Wish) || !h.term.Next(now, w.Turn) {
		return false
	}
	h.want = w
	if at, _ := h.term.Due(); at != due { // most turns change nothing for the watchdog
		h.set()
	}
	return true
}

// Look implements watchdog.Watched.
func (h *Hold) Look(now clock.Reading) (renew bool) {
	h.mu.Lock()
	lost := h.stop(h.term.Look(now))
	renew = h.term.Renew(now.Awake())
	h.set()
	h.mu.Unlock()
	h.tell(lost)
	return renew
}

// Check is Look for whoever asks whether the hold still stands.
func (h *Hold) Check(now clock.Reading) {
	h.mu.Lock()
	lost := h.stop(h.term.Look(now))
	h.mu.Unlock()
	h.tell(lost)
}

// stop ends the work if trust has ended just now, and says whether the hold has become lost by that. The caller holds the
// mutex.
func (h *Hold) stop(why term.Loss) (lost bool) {
	if why != term.None {
		h.want.Work.Stop(why)
	}
	return h.term.Gone()
}

// tell has the keeper told that the hold is over by itself. The contexts have ended by now.
func (h *Hold) tell(lost bool) {
	if lost {
		h.site.Watch.Leave(h)
		h.site.Keeper.Lost(h)
	}
}

// Term is its life, as it is now.
func (h *Hold) Term() term.Term {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.term
}

// Want is what whoever has the hold wants.
func (h *Hold) Want() *Want {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.want
}

// Forgo says that nobody has received the hold: MinHold does not apply.
func (h *Hold) Forgo() {
	h.mu.Lock()
	defer h.mu.Unlock()
	terms := *h.want.Terms
	terms.MinHold = 0
	h.want = &Want{&terms, h.want.Name, h.want.Work}
}

// Remaining says how long the hold is still trusted unless it is renewed, by the clock that timers go by.
func (h *Hold) Remaining(now clock.Awake) time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if state, _ := h.term.State(); state != term.Held {
		return 0
	}
	return max(0, h.term.Until().Sub(now))
}

// Held is what is told to those who find that this process has the name.
func (h *Hold) Held(now clock.Awake) *driver.Held {
	return &driver.Held{Label: h.Want().Label, Remaining: h.Remaining(now)}
}
