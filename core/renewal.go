package core

import (
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// renewClaim is what a renewal asks for: the TTL, but no less than a crash now would have to leave
// by WithMinHold. left is how long the tenure is still trusted at now; 0 if it is not.
func (t *tenure) renewClaim(now clock.Reading) (c driver.Claim, left time.Duration) {
	c = t.token.claim()
	c.TTL = max(t.cfg.ttl, t.rest(now))
	t.mu.Lock()
	defer t.mu.Unlock()
	return c, t.leftAt(now)
}

// renewed takes the answer to a renewal, or the lack of one, which came at now. An answer counts
// only if the old trust still lasts when it arrives. confirm says that Confirm has asked for the
// renewal, not the watchdog.
func (t *tenure) renewed(asked, now clock.Reading, err error, confirm bool) {
	t.locked(now, func() {
		if !confirm {
			t.renewing = false
		}
		t.landed()
		if t.state == tenureHeld {
			t.applyAnswer(asked, now, err, confirm)
		}
		if t.engine.events != nil && !errors.Is(err, errNotAsked) {
			t.engine.events.add(t.engine, RenewedEvent{t.subject(), now.Since(asked), t.renewal(err)})
		}
		t.engine.watchdog.set(t)
	})
}

// applyAnswer changes the trust by the answer to a renewal. The caller holds the mutex.
func (t *tenure) applyAnswer(asked, now clock.Reading, err error, confirm bool) {
	trusted, due := t.asked, t.renewAt
	switch {
	case err == nil:
		t.asked = asked
		if t.unproven {
			t.unproven, t.granted = false, asked
		}
		t.failed.Store(0)
		t.renewAt = asked.Awake().Add(t.engine.watchdog.jitter(asked, t.cfg.period(), lastSpread))
	case errors.Is(err, driver.ErrNotOwner):
		t.lose(ReasonTaken, now)
	default:
		t.failed.Add(1)
		t.renewAt = now.Awake().Add(jitter(t.cfg.ttl / 20))
	}
	if confirm && trusted.Awake() > asked.Awake() { // the watchdog has overtaken us
		t.asked = trusted
	}
	if due == clock.Never { // the watchdog is off, and stays off
		t.renewAt = clock.Never
	}
}

// renewal is what observers are told of an answer.
func (t *tenure) renewal(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, driver.ErrNotOwner):
		return &LostError{t.token.name, ReasonTaken}
	default:
		return &unavailableError{"renew", t.token.name, opaque(err)}
	}
}

// renewHere is renewNow for a degraded tenure.
func (t *tenure) renewHere() {
	now := t.engine.clock.Read()
	t.locked(now, func() {
		if t.state == tenureHeld {
			t.asked = now
			t.engine.watchdog.set(t)
		}
	})
}
