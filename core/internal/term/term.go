// Package term is the life of one grant: how long it is trusted, when it is renewed, whose turn it is, and how it
// ends.
//
// A [Term] is told what happened and when, and says what to do. It has no clock, no mutex, no goroutine, and
// does no I/O, so every order of events can be played.
//
//	held ──MaxHold──► stopped ──┐
//	  │ │                │      │
//	  │ └───────End──────┴──► ending ──► released
//	  └──trust is over, or taken──► lost
package term

import (
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// State is where a Term stands.
type State uint8

// The states.
const (
	Held     State = iota // trusted and renewed
	Stopped               // MaxHold is over: not trusted, not renewed, still to be released
	Ending                // its release is under way
	Released              // its release is over, whatever came of it
	Lost
)

// Loss is why trust has ended.
type Loss uint8

// The losses.
const (
	None        Loss = iota
	Expired          // nobody has renewed it in time
	Unreachable      // renewals were tried in vain
	Taken            // the service says that somebody else has it
	MaxHold          // it was held for as long as it may be
)

// Answer is what came of a command.
type Answer uint8

// The answers.
const (
	Yes      Answer = iota
	NotOwner        // the token owns nothing
	Silence         // it may have been executed, or may still be
	NotDone         // it was not executed
)

// Grant is what a Term begins with.
type Grant struct {
	Asked  clock.Reading // before the command that was granted
	Heard  clock.Reading // when that was known
	TTL    time.Duration // what the service gave
	Fence  uint64        // of the first turn; 0 if there is none
	Fences int           // how many turns there are fences for; 0 means one
}

// Turn is what whoever has the term wants of it.
type Turn struct {
	Every   time.Duration // how often to renew; 0: nobody does but Confirm
	MaxHold time.Duration // 0: for ever
}

// Term is the life of one grant. Its owner has a mutex for it.
type Term struct {
	asked  clock.Reading // when the last command was sent that was answered with yes
	life   time.Duration // how long it is trusted from then on
	heard  clock.Awake   // when the grant was heard: turns count from then
	begun  clock.Up      // when the turn under way began
	renew  clock.Awake   // when the next renewal is due
	early  time.Duration // and how much earlier it may be
	stop   clock.Awake   // when MaxHold ends the turn
	every  time.Duration // how often the turn is renewed; 0 for not at all
	fence  uint64
	left   int32 // turns after this one
	taken  int32 // turns before it
	fails  int32 // how many renewals in a row had no answer
	state  State
	loss   Loss
	flight bool // a renewal is under way
	gone   bool // Gone has said so
}

// Trust is how long a grant of ttl is believed, from before it was asked for: clocks may run at different rates, by
// one percent.
func Trust(ttl time.Duration) time.Duration { return ttl - ttl/100 - drift }

const drift = 2 * time.Millisecond

// New returns the life of g, in its first turn.
func New(g Grant, t Turn) Term {
	x := Term{asked: g.Asked, life: Trust(g.TTL), heard: g.Heard.Awake(), fence: g.Fence, left: int32(max(g.Fences, 1) - 1)} //nolint:gosec // G115: a block is small
	x.Begin(g.Heard, t)
	return x
}

// Begin begins a turn at now, with t, or the one under way anew.
func (x *Term) Begin(now clock.Reading, t Turn) {
	x.every, x.begun, x.stop = t.Every, now.Up(), clock.Never
	if t.MaxHold > 0 {
		x.stop = now.Awake().Add(t.MaxHold)
	}
	x.plan(firstSpread)
}

// State says where it stands, and why trust has ended if it has.
func (x *Term) State() (State, Loss) { return x.state, x.loss }

// Fence is the fence of the turn under way, 0 if there is none.
func (x *Term) Fence() uint64 { return x.fence }

// Begun is when the turn under way began: when its grant was heard, or when it was passed on.
func (x *Term) Begun() clock.Up { return x.begun }

// Until is when trust ends unless it is renewed.
func (x *Term) Until() clock.Awake { return x.asked.Awake().Add(x.life) }

// Life is how long a grant like the last one is trusted.
func (x *Term) Life() time.Duration { return x.life }

// Left is how long it is still trusted at now; 0 if it is not.
func (x *Term) Left(now clock.Reading) time.Duration {
	if x.state != Held {
		return 0
	}
	return max(0, x.life-now.Since(x.asked))
}

// Stands says whether nobody else can have the name by now, as far as clocks tell.
func (x *Term) Stands(now clock.Reading) bool { return now.Since(x.asked) < x.life }

// Fails says how many renewals in a row had no answer.
func (x *Term) Fails() int { return int(x.fails) }

// under says that the end of the term has not begun.
func (x *Term) under() bool { return x.state == Held || x.state == Stopped }

// Look does what is due at now, and says what ended trust, if that has happened just now.
func (x *Term) Look(now clock.Reading) Loss {
	if !x.under() {
		return None
	}
	if !x.Stands(now) {
		if x.fails > 0 {
			return x.lose(Unreachable)
		}
		return x.lose(Expired)
	}
	if x.state == Held && now.Awake() >= x.stop {
		x.state, x.loss = Stopped, MaxHold
		return MaxHold
	}
	return None
}

// Gone says, once, that the term is lost.
func (x *Term) Gone() bool {
	first := x.state == Lost && !x.gone
	x.gone = x.gone || first
	return first
}

// lose ends trust. If MaxHold has ended it before, that was told, and stays the reason.
func (x *Term) lose(why Loss) Loss {
	was := x.state
	x.state = Lost
	if was == Stopped {
		return None
	}
	x.loss = why
	return why
}
