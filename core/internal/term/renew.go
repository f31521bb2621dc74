package term

import (
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// Durations of a renewal are parts of what the term has left, with a floor: a grant that was made in the queue is
// trusted for three seconds at first, whatever its TTL.
const floor = 5 * time.Millisecond

// How much earlier than that renewals go, as a part of the time until then. The first ones are spread because many grants may
// have been asked for at once. Later ones are spread so that processes do not fall into step.
const (
	firstSpread = 4 // up to a quarter
	lastSpread  = 16
)

// plan sets when the next renewal is due: a third of the life after the last answer, or earlier if the turn says so, less some
// spread.
func (x *Term) plan(part time.Duration) {
	x.renew = clock.Never
	if d := x.every; d > 0 {
		if d > x.life/10*7 { // a grant that was made in the queue
			d = max(x.life/3, floor)
		}
		x.renewIn(x.asked.Awake(), d-spread(x.asked.Awake(), d/part))
	}
}

// spread is a part of most. It is the same for all that was asked for within one millisecond: what is renewed together is due
// together again.
func spread(asked clock.Awake, most time.Duration) time.Duration {
	share := uint32(asked/clock.Awake(time.Millisecond)) * 2654435761 //nolint:gosec // G115: a hash
	return time.Duration(float64(most) * float64(share) / (1 << 32))
}

// renewIn has it renewed after d. To share a command with others, that may be a tenth of d earlier.
func (x *Term) renewIn(from clock.Awake, d time.Duration) { x.renew, x.early = from.Add(d), d/10 }

// Due is when to look again, and how much earlier it may be, to share a command with others.
func (x *Term) Due() (at clock.Awake, early time.Duration) {
	if !x.under() {
		return clock.Never, 0
	}
	at = x.Until()
	if x.state == Held {
		at = min(at, x.stop)
	}
	if x.state == Held && !x.flight && x.renew < at {
		at, early = x.renew, x.early
	}
	return at, early
}

// Renew says whether a renewal is due at now. If so, it is under way from then on. Look comes before.
func (x *Term) Renew(now clock.Awake) bool { return now >= x.renew.Add(-x.early) && x.Confirm() }

// Confirm is Renew for somebody who does not wait until it is due. There is one renewal at a time: if one is under
// way, he waits for that one.
func (x *Term) Confirm() bool {
	if x.state != Held || x.flight {
		return false
	}
	x.flight = true
	return true
}

// Flight says whether a renewal is under way.
func (x *Term) Flight() bool { return x.flight }

// Patience is how long a renewal that is sent at now may take: a quarter of what is left, at most two seconds.
func (x *Term) Patience(now clock.Reading) time.Duration {
	left := x.Left(now)
	return min(max(min(left/4, 2*time.Second), floor), left)
}

// Least is the shortest TTL, in whole milliseconds, that a renewal at now may have: with a shorter one it would cut short what is
// trusted already, and its answer may be lost.
func (x *Term) Least(now clock.Reading) time.Duration {
	left := x.Left(now) + drift
	return (left + left/99 + 2*time.Millisecond).Truncate(time.Millisecond)
}

// Renewed takes the answer to the renewal with this TTL that was sent at asked. It came at now. An answer counts only if the
// old trust still stands when it comes, so what is overdue is looked at first. It says what ended trust, if that
// has happened just now.
func (x *Term) Renewed(asked, now clock.Reading, ttl time.Duration, a Answer) Loss {
	x.flight = false
	if loss := x.Look(now); x.state != Held {
		return loss
	}
	switch a {
	case Yes:
		x.asked, x.life, x.fails = asked, Trust(ttl), 0
		x.plan(lastSpread)
	case NotOwner:
		return x.lose(Taken)
	case Silence, NotDone:
		x.fails++
		if x.renew != clock.Never {
			x.renewIn(now.Awake(), max(x.Left(now)/20, floor))
		}
	}
	return None
}
