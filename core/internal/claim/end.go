package claim

import (
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// Cleanup is what has to be done behind a claim that is over.
type Cleanup struct {
	// Once says to send one release, until it is answered: the token may stand in the queue or own the name.
	Once bool
	// For is how long a command may come that nobody knows of; 0 if none can. Releases have to be sent so
	// long again and again.
	For time.Duration
}

// Drop ends a claim that no hold has, at now: nobody wants it any more. If it was granted, it is released, without MinHold.
func (c *Claim) Drop(now clock.Awake) Cleanup {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = over
	return c.cleanup(now, c.placed || c.open > 0)
}

// cleanup says what to do. A command that was given up longest ago, or earlier, does not come any more. The caller
// holds the mutex.
func (c *Claim) cleanup(now clock.Awake, once bool) Cleanup {
	x := Cleanup{Once: once}
	if c.open > 0 {
		x.For = max(0, c.longest()-now.Sub(c.get().since))
	}
	return x
}

// End says that the release of the hold begins.
func (c *Claim) End() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.phase = ending
}

// Left is how a release frees the name.
type Left struct {
	Mark    bool          // leave the marker of the wish
	Keep    time.Duration // the name stays taken for so long
	Handoff string        // with Keep: for this hand-off
}

// Release is the claim for a release.
func (c *Claim) Release(w *Wish, left Left) driver.Claim {
	r := driver.Claim{Name: c.Name, Token: c.token, Label: w.Label, TTL: w.Lifetime(), Limit: w.Limit, Scope: w.Scope, Keep: left.Keep, Handoff: left.Handoff}
	if left.Mark {
		r.Dedup = w.Dedup
	}
	return r
}

// Ended ends a claim whose hold is over. confirmed says that its release was answered. mayKeep says that the
// name was to stay taken after the release: if it is not known whether it was, nothing may be cleaned up, since
// that would free the name too early.
func (c *Claim) Ended(now clock.Awake, confirmed, mayKeep bool) Cleanup {
	c.mu.Lock()
	defer c.mu.Unlock()
	if mayKeep && !confirmed {
		c.phase = kept
		return Cleanup{}
	}
	c.phase, c.placed = over, c.placed || c.get().outage != nil && !confirmed
	return c.cleanup(now, c.placed || c.open > 0 && !confirmed) // a command may have come in the last moment
}

// Cleaner is the claim for a release that cleans up.
func (c *Claim) Cleaner() driver.Claim {
	c.mu.Lock()
	defer c.mu.Unlock()
	return driver.Claim{Name: c.Name, Token: c.token, TTL: c.longest()}
}

// Settles is how many commands a release that is sent now settles.
func (c *Claim) Settles() int32 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.get().settles
}

// Cleaned takes the outcome of such a release, with what Settles was as it was sent.
func (c *Claim) Cleaned(m driver.Meaning, settles int32) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !m.Answered() {
		return
	}
	c.placed = false
	if settles = min(settles, c.get().settles); settles > 0 {
		c.rare.settles -= settles
		c.open -= settles
	}
}

// Doubtful says of a claim that is over whether a command may still come that nobody knows of.
func (c *Claim) Doubtful() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.open > 0 || c.placed
}
