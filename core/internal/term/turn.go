package term

import (
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// Turns is the time from when a grant is heard in which it goes from one caller of this process to the next without
// a command. When it is over, or the fences are used up, other processes have their chance.
const Turns = 5 * time.Millisecond

// Next is the next turn, if another caller of this process can have it at now: the term is trusted for a third of its
// life at least, no renewal is under way or has failed, and there are turns left. It never loses the term: whoever calls it
// has no time for that.
func (x *Term) Next(now clock.Reading, t Turn) bool {
	if x.flight || x.fails > 0 || x.left == 0 || now.Awake().Sub(x.heard) >= Turns || x.Left(now) < x.life/3 || now.Awake() >= x.stop {
		return false
	}
	x.left--
	x.taken++
	x.fence++
	x.Begin(now, t)
	return true
}

// Turns says how many turns there were.
func (x *Term) Turns() int { return int(x.taken) + 1 }

// End says that whoever has the term ends it at now. It is true if a release has to be sent. Otherwise it is over, and
// loss says why if that has happened just now.
func (x *Term) End(now clock.Reading) (release bool, loss Loss) {
	loss = x.Look(now)
	if release = x.under(); release {
		x.state = Ending
	}
	return release, loss
}

// MayRelease says whether a release may be sent at now. It may not while a renewal is under way, which could come after it, and when
// the term is over: nobody knows then whose the name is, and nothing is renewed.
func (x *Term) MayRelease(now clock.Reading) bool {
	return !x.flight && x.Stands(now)
}

// Result is what a release has come to.
type Result uint8

// The results.
const (
	Freed       Result = iota
	WasLost            // it was lost before, and loss says how
	Unconfirmed        // it is not known; the name comes free when its TTL ends
)

// ReleasedBy ends the term at now with the answer to its release. open says that an earlier command of the same release had no
// answer. If that one has freed the name, the answer now is that the token owns nothing. That is assumed only if nobody
// else can have had the name since. tried is false if nothing was sent, because the term was over.
func (x *Term) ReleasedBy(now clock.Reading, a Answer, open, tried bool) (Result, Loss) {
	x.state = Released
	told := x.loss // by MaxHold
	switch {
	case !tried:
		return x.lostAtLast(Expired)
	case a == Yes, a == NotOwner && open && x.Stands(now):
		if told != None {
			return WasLost, told
		}
		return Freed, None
	case a == NotOwner && !open:
		return x.lostAtLast(Taken)
	default:
		return Unconfirmed, told
	}
}

func (x *Term) lostAtLast(why Loss) (Result, Loss) {
	if x.loss == None {
		x.loss = why
	}
	return WasLost, x.loss
}
