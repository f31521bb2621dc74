package hold

import (
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/term"
)

// Ending is the release of a hold: one command that only the owner's token makes true, sent again while its outcome is unknown and
// the hold's time is not over. It is written as steps, so that every order of events can be played:
//
//	e, _, ok := h.End(now, left)
//	wait for e.Idle()                 // a renewal is under way
//	for c, bound, ok := e.Send(now); ok && e.Answered(m); …
//	e.Over(now)
type Ending struct {
	hold  *Hold
	left  claim.Left
	tried bool // something was sent
	open  bool // a command of this release may have acted already
	last  driver.Meaning
}

// Outcome is what the end of a hold has come to.
type Outcome struct {
	Result   term.Result
	Loss     term.Loss // with WasLost
	Unmarked bool      // it was released without its marker
	Cleanup  claim.Cleanup
}

// End begins the release, once the contexts of the work have ended. It is not ok if the hold was lost: then everything is over.
func (h *Hold) End(now clock.Reading, left claim.Left) (e Ending, loss term.Loss, ok bool) {
	h.mu.Lock()
	ok, why := h.term.End(now)
	lost := h.stop(why)
	if _, loss = h.term.State(); loss != term.None { // nothing that was lost leaves a marker, or is handed off
		left = claim.Left{}
	}
	h.mu.Unlock()
	h.tell(lost)
	return Ending{hold: h, left: left}, loss, ok
}

// Idle is closed once no renewal is under way, which could come after the release; nil if none is.
func (e *Ending) Idle() <-chan struct{} {
	h := e.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.term.Flight() {
		return nil
	}
	return h.wait()
}

// Send is the next command of the release, for at most bound. It is not ok if there is none: the time of the hold is over.
func (e *Ending) Send(now clock.Reading) (c driver.Claim, bound time.Duration, ok bool) {
	h := e.hold
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.term.MayRelease(now) {
		return c, 0, false
	}
	h.Claim.End()
	e.tried = true
	left := e.left
	left.Keep = e.keep(now)
	return h.Claim.Release(&h.want.Wish, left), driver.Patience(h.want.TTL), true
}

// keep is for how long the name is to stay taken from now on. The caller holds the mutex.
func (e *Ending) keep(now clock.Reading) time.Duration { return max(e.left.Keep, e.hold.rest(now)) }

// Answered takes the outcome of a command, and says whether to send another one.
func (e *Ending) Answered(m driver.Meaning) (again bool) {
	e.last = m
	e.open = e.open || m.Open()
	return m.Again()
}

// Over ends the hold at now. Whoever calls it cleans up, and vacates the name.
func (e *Ending) Over(now clock.Reading) Outcome {
	h := e.hold
	x := Outcome{Unmarked: e.last.Kind == driver.Unmarked}
	h.mu.Lock()
	x.Result, x.Loss = h.term.ReleasedBy(now, answer(e.last), e.open, e.tried)
	mayKeep := e.keep(now) > 0
	h.mu.Unlock()
	h.site.Watch.Leave(h)
	x.Cleanup = h.Claim.Ended(now.Awake(), e.last.Answered(), mayKeep)
	return x
}

// Ended is for a hold that was lost: what has to be cleaned up behind it.
func (h *Hold) Ended(now clock.Reading) claim.Cleanup {
	h.mu.Lock()
	rest := h.rest(now)
	h.mu.Unlock()
	return h.Claim.Ended(now.Awake(), false, rest > 0)
}
