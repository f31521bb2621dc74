package hold

import (
	"context"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/term"
)

// brief is a time in which no answer comes: a renewal that may take no longer is not sent.
const brief = time.Millisecond

// Renewal implements watchdog.Watched: the claim of the renewal that is under way since Look has said so. It has the TTL of whoever has
// the hold now, and no less than what is trusted already, or than a crash now would have to leave by MinHold.
func (h *Hold) Renewal(now clock.Reading) (c driver.Claim, patience time.Duration, ok bool) {
	h.mu.Lock()
	lost := h.stop(h.term.Look(now))
	if patience = h.term.Patience(now); patience >= brief { // none of a hold that is over
		c, ok = h.Claim.Renewal(&h.want.Wish, max(h.want.TTL, h.rest(now), h.term.Least(now))), true
	} else { // nothing was sent
		h.term.Renewed(now, now, 0, term.NotDone)
		h.landed()
	}
	h.mu.Unlock()
	h.tell(lost)
	return c, patience, ok
}

// Renewed implements watchdog.Watched.
func (h *Hold) Renewed(c driver.Claim, asked, now clock.Reading, err error) {
	h.site.Keeper.Renewed(h, now.Awake().Sub(asked.Awake()), err)
	m := driver.Explain(err)
	ttl := h.Claim.Renewed(m, c.TTL)
	h.mu.Lock()
	if h.want.MinHold > 0 { // that keeps the name, and nobody's trust
		ttl = min(ttl, h.want.TTL)
	}
	lost := h.stop(h.term.Renewed(asked, now, ttl, answer(m)))
	h.landed()
	h.set()
	h.mu.Unlock()
	h.tell(lost)
}

// Fails implements watchdog.Watched.
func (h *Hold) Fails() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.term.Fails()
}

// answer is what an outcome means for a term.
func answer(m driver.Meaning) term.Answer {
	switch m.Kind {
	case driver.Done, driver.Unmarked:
		return term.Yes
	case driver.NotOwner:
		return term.NotOwner
	case driver.NotDone:
		return term.NotDone
	default:
		return term.Silence
	}
}

// rest is what is left, at now, of the time for which MinHold keeps the name taken. It counts from when the turn began. The caller
// holds the mutex.
func (h *Hold) rest(now clock.Reading) time.Duration {
	left := h.want.MinHold - now.Up().Sub(h.term.Begun())
	return max(0, left+time.Millisecond-1).Truncate(time.Millisecond) // backends count in whole ones
}

// landed has those told who wait for the renewal under way. The caller holds the mutex.
func (h *Hold) landed() {
	if h.idle != nil {
		close(h.idle)
		h.idle = nil
	}
}

// wait returns a channel that is closed once no renewal is under way. The caller holds the mutex.
func (h *Hold) wait() <-chan struct{} {
	if h.idle == nil {
		h.idle = make(chan struct{})
	}
	return h.idle
}

// Left says how long the hold is still trusted, and how long it is after a renewal.
func (h *Hold) Left(now clock.Reading) (left, life time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.term.Left(now), h.term.Life()
}

// Refresh renews once, unless more than enough is left, or somebody else does. It waits for that as long as ctx and the
// hold stand. There is one renewal at a time: whoever finds one under way waits for that one, and looks again. The renewal
// goes on, and counts, if ctx ends.
func (h *Hold) Refresh(ctx context.Context, p *call.Port, enough time.Duration) {
	left, _ := h.Left(p.Clock.Read())
	ctx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	for sent := false; ; {
		now := p.Clock.Read()
		h.mu.Lock()
		if h.term.Left(now) > enough || sent {
			h.mu.Unlock()
			return
		}
		if h.term.Confirm() {
			sent = true
			p.Tasks.Go(func() { h.confirm(p) })
		}
		idle := h.wait()
		h.mu.Unlock()
		select {
		case <-idle:
		case <-ctx.Done():
			return
		}
	}
}

// Turn begins the turn under way anew at now, as t says: a group has one clock, which begins when it is whole.
func (h *Hold) Turn(now clock.Reading, t term.Turn) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.term.Begin(now, h.turn(t))
	h.set()
}

func (h *Hold) confirm(p *call.Port) {
	now := p.Clock.Read()
	c, patience, ok := h.Renewal(now)
	if !ok {
		return
	}
	errs := p.Renew([]driver.Claim{c}, patience)
	h.Renewed(c, now, p.Clock.Read(), errs[0])
}
