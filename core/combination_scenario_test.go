package core_test

import (
	"fmt"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// scenario is what is decided before anything happens.
type scenario struct {
	ttl     time.Duration
	prompt  [2]bool // each process's backend is driver.Capabilities.Punctual
	jobs    []*job
	spells  []spell
	closes  time.Duration // when process 1 is closed, 0: at the end
	drains  bool          // and whether it drains before
	patient bool          // and whether its Drain and its Close wait until all is given back
}

// job is what one goroutine does: it asks for a name, or for several, holds what it gets, and
// gives it back.
type job struct {
	number  int
	process int
	at      time.Duration
	names   []string // more than one: AcquireAll
	way     way
	kind    kind
	limit   int // of a limited kind
	minHold time.Duration
	local   bool // OnUnavailable(LocalOnly)
	handoff handoffKind
	wait    time.Duration // as in core.WithWait
	ttl     time.Duration // 0: the scenario's
	label   label
	bound   holdBound
	leave   leaving       // how its context ends
	leaves  time.Duration // after it began
	hold    time.Duration // before, between and after the steps
	deaf    bool          // it does not look at its context meanwhile
	steps   []step
	ending  ending
	choice  int      // whatever else is to be chosen
	depth   int      // in leases of other jobs
	wrong   bool     // it cannot be had inside the lease that it is asked for in
	outer   *holding // inside of which it is asked for, or nil
}

type (
	way         string
	kind        string
	handoffKind string
	holdBound   string
	leaving     string
	label       string
	step        string
	ending      string
)

const (
	acquire  way = "Acquire"
	try      way = "TryAcquire"
	do       way = "Do"
	campaign way = "Campaign"
	several  way = "AcquireAll"

	exclusive kind = "exclusive"
	reader    kind = "shared"
	limited   kind = "limited"
	minHeld   kind = "min-hold"
	deduped   kind = "dedup"

	byDefault label = ""
	labelled  label = "WithLabel"
	unlabeled label = "without a label"
	operation label = "WithOperation"

	noHandoff    handoffKind = ""
	someHandoff  handoffKind = "with a hand-off"       // of Detach: fresh, used or over, as it comes
	staleHandoff handoffKind = "with a stale hand-off" // that nobody knows any more

	renewed   holdBound = ""
	unwatched holdBound = "WithoutRenewal"
	maxHeld   holdBound = "WithMaxHold"

	never     leaving = "cancelled never"
	noContext leaving = "context.Background"
	deadline  leaving = "deadline"
	cancelled leaving = "cancelled"

	nothing  step = "nothing"
	confirm  step = "Confirm"
	siblings step = "siblings"
	nest     step = "AcquireAll inside"
	cross    step = "Acquire inside, in any order"
	rob      step = "somebody deletes a lock"

	release   ending = "Release"
	lateEnd   ending = "Release in a context that has ended"
	finish    ending = "Finish"
	detach    ending = "Detach"
	panics    ending = "panic"
	completes ending = "Complete"
	outlived  ending = "Release before that of an inner lease"
)

// line is what the job is like, among those of its process that want the same name: the same lines have one token.
func (e *job) line() string {
	switch {
	case e.handoff != noHandoff:
		return string(e.handoff)
	case e.kind == reader, e.kind == limited:
		return fmt.Sprint(e.kind, e.limit)
	default:
		return fmt.Sprint(e.local)
	}
}

func (e *job) String() string {
	var b strings.Builder
	say := func(when bool, format string, args ...any) {
		if when {
			fmt.Fprintf(&b, ", "+format, args...)
		}
	}
	fmt.Fprintf(&b, "job %d of process %d at %v: %s %v %s", e.number, e.process, e.at, e.way, e.names, e.kind)
	say(e.kind == limited, "limit %d", e.limit)
	say(e.kind == minHeld, "for %v", e.minHold)
	say(e.local, "LocalOnly")
	say(e.handoff != noHandoff, "%s", e.handoff)
	say(e.wait != core.WaitForever, "WithWait(%v)", e.wait)
	say(e.ttl > 0, "WithTTL(%v)", e.ttl)
	say(e.label != byDefault, "%s", e.label)
	say(e.bound != renewed, "%s", e.bound)
	say(true, "%s", e.leave)
	say(e.leave == deadline || e.leave == cancelled, "after %v", e.leaves)
	say(true, "holds for %v", e.hold)
	say(e.deaf, "deaf")
	say(len(e.steps) > 0, "%v", e.steps)
	say(true, "%s", e.ending)
	return b.String()
}

// spell is bad weather on one process's link.
type spell struct {
	process     int
	at, lasts   time.Duration
	ops         []lab.Op      // of these commands
	next        []lab.Fate    // first, of each of them
	fate        lab.Fate      // then
	there, back time.Duration // delays of all
	deliver     bool          // what was held back comes in the middle of it, and not only at its end
}

var fateNames = [...]string{"Delivered", "Refused", "RequestLost", "ReplyLost", "ReplyReset", "HeldBack", "ReplyHeldBack"}

func (s spell) String() string {
	if s.there > 0 {
		return fmt.Sprintf("process %d: delays of %v and %v, for %v", s.process, s.there, s.back, s.lasts)
	}
	names := make([]string, 0, len(s.next))
	for _, f := range s.next {
		names = append(names, fateNames[f])
	}
	return fmt.Sprintf("process %d: %v are %v and then %s, for %v", s.process, s.ops, names, fateNames[s.fate], s.lasts)
}
