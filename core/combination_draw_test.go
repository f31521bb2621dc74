package core_test

import (
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// scenario is what is decided before anything happens.
type scenario struct {
	ttl     time.Duration
	longest time.Duration // TTL of all
	prompt  [2]bool       // each process's backend is driver.Capabilities.Punctual
	jobs    []*job
	spells  []spell
	closes  time.Duration // when process 1 is closed, 0: at the end
	drains  bool          // and whether it drains before
	patient bool          // and whether its Drain and its Close wait until all is given back
}

// job is what one goroutine does: it asks for a name, or for several, holds what it gets, and
// gives it back.
type job struct {
	number, process, limit int
	at                     time.Duration
	names                  []string // more than one: AcquireAll
	way, kind, label       string
	handoff, bound, ending string
	minHold                time.Duration
	local                  bool          // OnUnavailable(LocalOnly)
	wait                   time.Duration // as in core.WithWait
	ttl                    time.Duration // 0: the scenario's
	leave                  string        // how its context ends
	leaves                 time.Duration // after it began
	hold                   time.Duration // before, between and after the steps
	deaf                   bool          // it does not look at its context meanwhile
	steps                  []string
	choice                 int      // whatever else is to be chosen
	depth                  int      // in leases of other jobs
	wrong                  bool     // it cannot be had inside the lease that it is asked for in
	outer                  *holding // inside of which it is asked for, or nil
}

// What a job's fields can be.
const (
	acquire, try, do, campaign, several = "Acquire", "TryAcquire", "Do", "Campaign", "AcquireAll"

	exclusive, reader, limited, minHeld, deduped = "exclusive", "shared", "limited", "min-hold", "dedup"

	someHandoff  = "with a hand-off"       // of Detach: fresh, used or over, as it comes
	staleHandoff = "with a stale hand-off" // that nobody knows any more

	renewed, unwatched, maxHeld = "", "WithoutRenewal", "WithMaxHold"

	never, noContext, deadline, cancelled = "cancelled never", "context.Background", "deadline", "cancelled"

	nothing, confirm, siblings = "nothing", "Confirm", "siblings"
	nest, cross, rob           = "AcquireAll inside", "Acquire inside, in any order", "somebody deletes a lock"

	release, lateEnd, finish = "Release", "Release in a context that has ended", "Finish"
	detach, panics           = "Detach", "panic"
	completes, outlived      = "Complete", "Release before that of an inner lease"
)

// spell is a time of faults on one process's link.
type spell struct {
	process     int
	at, lasts   time.Duration
	ops         []lab.Op      // of these commands
	next        []lab.Fate    // first, of each of them
	fate        lab.Fate      // then
	there, back time.Duration // delays of all
	deliver     bool          // what was held back comes in the middle of it, and not only at its end
}

// artist draws scenarios. Each has half of all features only: so those it has meet more often.
type artist struct {
	*rand.Rand
	*scenario
	horizon time.Duration   // nothing begins later
	moments []time.Duration // when much happens
	tick    time.Duration   // 0, or what all times are a multiple of: then more happens at the same instant
	menu
}

// menu is what the jobs of a scenario choose from.
type menu struct {
	names, ways, kinds, leaves, bounds, steps, endings []string
	ttls                                               []time.Duration

	local, handoffs, several, budgets, deaf bool
}

func draw(seed uint64) *scenario {
	a := &artist{Rand: rand.New(rand.NewPCG(seed, 7)), scenario: new(scenario)}
	a.ttl = pick(a, time.Second, 2*time.Second, 4*time.Second, ttl)
	a.longest = a.ttl
	a.horizon = a.ttl*time.Duration(1+a.IntN(3)) + 3*time.Second
	for range 1 + a.IntN(4) {
		a.moments = append(a.moments, a.upTo(a.horizon))
	}
	if a.coin() {
		a.tick = a.ttl / 10
	}
	a.prompt = [2]bool{a.coin(), a.coin()}
	a.menu = menu{
		names:   pick(a, []string{"a"}, []string{"a", "a", "b"}, []string{"a", "a", "a", "b", "b", "c"}),
		ways:    some(a, []string{acquire, acquire}, try, do, campaign),
		kinds:   some(a, []string{exclusive, exclusive}, reader, limited, minHeld, deduped),
		leaves:  some(a, []string{never}, noContext, deadline, cancelled),
		bounds:  some(a, []string{renewed, renewed, renewed}, unwatched, maxHeld),
		steps:   some(a, []string{nothing, nothing}, confirm, siblings, nest, rob),
		endings: some(a, []string{release, release}, lateEnd, finish, panics, outlived),
		ttls:    some(a, []time.Duration{2 * a.ttl}, 100*time.Millisecond, time.Hour),
		local:   a.coin(), handoffs: a.coin(), several: a.coin(), budgets: a.coin(), deaf: a.coin(),
	}
	if a.handoffs {
		a.endings = append(a.endings, detach, detach, detach)
	}
	if a.coin() {
		a.names = []string{"a", "a", "b", "b", "c"}
		a.steps = append(a.steps, cross, cross)
		a.crossed()
	}
	for range 4 + a.IntN(12) {
		a.caller()
	}
	for process := range a.prompt {
		if a.IntN(6) > 0 {
			a.faults(process)
		}
	}
	if a.IntN(6) == 0 {
		a.closes, a.patient, a.drains = a.upTo(a.horizon), a.coin(), a.coin()
	}
	return a.scenario
}

func (a *artist) coin() bool { return a.IntN(2) == 0 }

func (a *artist) upTo(d time.Duration) time.Duration {
	d = time.Duration(a.Int64N(int64(d))) + 1
	if a.tick > 0 {
		d = (d + a.tick - 1).Truncate(a.tick)
	}
	return d
}

// when is a time at which something begins.
func (a *artist) when() time.Duration {
	if a.IntN(4) == 0 {
		return a.upTo(a.horizon)
	}
	return pick(a, a.moments...) + a.upTo(a.ttl/4)
}

func pick[T any](a *artist, from ...T) T { return from[a.IntN(len(from))] }

// some returns always and, of the rest, what the scenario has.
func some[T any](a *artist, always []T, rest ...T) []T {
	for _, one := range rest {
		if a.coin() {
			always = append(always, one)
		}
	}
	return always
}

func (a *artist) add(e *job) {
	e.number = len(a.jobs)
	a.jobs = append(a.jobs, e)
}

// caller adds a job, and sometimes others beside it.
func (a *artist) caller() {
	e := a.job()
	a.add(e)
	switch a.IntN(8) {
	case 0: // a herd: as many that want the same, and leave at the same time
		for range 2 + a.IntN(10) {
			one := *e
			one.hold = min(one.hold, 5*time.Millisecond)
			a.add(&one)
		}
	case 1: // a crowd: others that want other things of the same name, at about the same time
		for range 1 + a.IntN(6) {
			one := a.job()
			one.process, one.names, one.at = e.process, e.names, e.at+a.upTo(20*time.Millisecond)
			if len(one.names) > 1 {
				one.way, one.handoff = several, ""
			}
			a.add(one)
		}
	}
}

// crossed are two jobs that take two names in opposite order, at about the same time.
func (a *artist) crossed() {
	at := a.when()
	for _, name := range []string{"a", "b"} {
		e := a.job()
		e.at, e.names, e.way, e.kind, e.handoff = at+a.upTo(5*time.Millisecond), []string{name}, do, exclusive, ""
		e.hold, e.steps = a.upTo(20*time.Millisecond), []string{cross}
		a.add(e)
	}
}

func (a *artist) job() *job {
	e := &job{
		process: a.IntN(2), at: a.when(), names: []string{pick(a, a.names...)},
		way: pick(a, a.ways...), kind: pick(a, a.kinds...), limit: 2 + a.IntN(2), wait: core.WaitForever,
		leave: pick(a, a.leaves...), leaves: pick(a, a.upTo(100*time.Millisecond), a.upTo(a.ttl), a.upTo(2*a.ttl)),
		label: pick(a, "", "", "mine"), bound: pick(a, a.bounds...), deaf: a.deaf && a.coin(), ending: pick(a, a.endings...),
		hold: pick(a, 0, a.upTo(5*time.Millisecond), a.upTo(a.ttl/4), a.upTo(a.ttl)), choice: a.IntN(100),
		minHold: pick(a, a.upTo(a.ttl/2), a.upTo(2*a.ttl)).Truncate(time.Millisecond) + time.Millisecond,
	}
	for range a.IntN(4) {
		e.steps = append(e.steps, pick(a, a.steps...))
	}
	if a.budgets && a.coin() {
		e.wait = pick(a, 0, a.upTo(a.ttl), a.upTo(2*a.ttl)).Truncate(time.Millisecond)
	}
	if a.IntN(8) == 0 {
		e.ttl = pick(a, a.ttls...)
		a.longest = max(a.longest, e.ttl)
	}
	switch {
	case a.several && a.IntN(3) == 0:
		e.way, e.names = several, []string{"a", "b", "c"}[a.IntN(2):]
	case a.handoffs && a.coin() && e.kind != reader && e.kind != limited:
		e.handoff = pick(a, someHandoff, staleHandoff)
	}
	if e.kind == exclusive && a.local {
		e.local = a.IntN(3) > 0
	}
	return e
}

// faults gives a process's link its spells.
func (a *artist) faults(process int) {
	fates := some(a, []lab.Fate{lab.Refused, lab.RequestLost}, lab.ReplyLost, lab.ReplyReset, lab.HeldBack, lab.ReplyHeldBack)
	ops := []lab.Op{lab.OpAcquire, lab.OpRenew, lab.OpRelease, lab.OpWait}
	for range 1 + a.IntN(6) {
		s := spell{process: process, at: a.when(), ops: ops, fate: pick(a, fates...), deliver: a.coin()}
		s.lasts = pick(a, a.upTo(a.ttl/3), a.upTo(a.ttl), a.upTo(2*a.ttl))
		if a.IntN(4) == 0 {
			s.ops = ops[a.IntN(len(ops)):][:1]
		}
		switch a.IntN(6) {
		case 0:
			s.there, s.back = a.upTo(a.ttl/2), a.upTo(a.ttl/2)
		case 1:
			s.there, s.back = a.upTo(a.ttl/20), a.upTo(a.ttl/20)
		case 2, 3:
			s.fate = pick(a, lab.Delivered, s.fate)
			for range 1 + a.IntN(5) {
				s.next = append(s.next, pick(a, pick(a, fates...), lab.Delivered))
			}
		}
		a.spells = append(a.spells, s)
	}
}
