package core_test

import (
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// artist draws scenarios. Each has half of all features only: so those it has meet more often.
type artist struct {
	*rand.Rand
	features uint64
	used     int
	scenario *scenario
	horizon  time.Duration   // nothing begins later
	moments  []time.Duration // when much happens
	tick     time.Duration   // 0, or what all times are a multiple of: then more happens at the same instant
}

func draw(rng *rand.Rand) *scenario {
	a := &artist{Rand: rng, features: rng.Uint64(), scenario: new(scenario)}
	p := a.scenario
	p.ttl = pick(a, time.Second, 2*time.Second, 4*time.Second, ttl)
	a.horizon = p.ttl*time.Duration(1+a.IntN(3)) + 3*time.Second
	for range 1 + a.IntN(4) {
		a.moments = append(a.moments, a.upTo(a.horizon))
	}
	if a.coin() {
		a.tick = p.ttl / 10
	}
	p.prompt = [2]bool{a.has(), a.has()}
	a.jobs()
	for process := range p.prompt {
		if a.IntN(6) > 0 {
			a.weather(process)
		}
	}
	if a.IntN(6) == 0 {
		p.closes, p.patient, p.drains = a.upTo(a.horizon), a.coin(), a.coin()
	}
	return p
}

// has says whether the scenario has the feature that is asked for next.
func (a *artist) has() bool {
	a.used++
	return a.features>>a.used&1 == 1
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
	return pick(a, a.moments...) + a.upTo(a.scenario.ttl/4)
}

func pick[T any](a *artist, from ...T) T { return from[a.IntN(len(from))] }

// some returns always and, of the rest, what the scenario has.
func some[T any](a *artist, always []T, rest ...T) []T {
	for _, one := range rest {
		if a.has() {
			always = append(always, one)
		}
	}
	return always
}

// menu is what the jobs of a scenario choose from.
type menu struct {
	names   []string
	ways    []way
	kinds   []kind
	leaves  []leaving
	bounds  []holdBound
	steps   []step
	endings []ending

	local, handoffs, several, budgets, labels, deaf bool
}

func (a *artist) jobs() {
	m := &menu{
		names:   pick(a, []string{"a"}, []string{"a", "a", "b"}, []string{"a", "a", "a", "b", "b", "c"}),
		ways:    some(a, []way{acquire, acquire}, try, do, campaign),
		kinds:   some(a, []kind{exclusive, exclusive}, reader, limited, minHeld, deduped),
		leaves:  some(a, []leaving{never}, noContext, deadline, cancelled),
		bounds:  some(a, []holdBound{renewed, renewed, renewed}, unwatched, maxHeld),
		steps:   some(a, []step{nothing, nothing}, confirm, siblings, nest, rob),
		endings: some(a, []ending{release, release}, lateEnd, finish, panics, outlived),
	}
	m.local, m.handoffs, m.several = a.has(), a.has(), a.has()
	m.budgets, m.labels, m.deaf = a.has(), a.has(), a.has()
	if m.handoffs {
		m.endings = append(m.endings, detach, detach, detach)
	}
	p := a.scenario
	if a.has() {
		m.names = []string{"a", "a", "b", "b", "c"}
		m.steps = append(m.steps, cross, cross)
		a.crossed(m)
	}
	for range 4 + a.IntN(12) {
		e := a.job(m)
		p.jobs = append(p.jobs, e)
		switch a.IntN(8) {
		case 0: // a herd: as many that want the same, and leave at the same time
			for range 2 + a.IntN(10) {
				one := *e
				one.hold = min(one.hold, 5*time.Millisecond)
				p.jobs = append(p.jobs, &one)
			}
		case 1: // a crowd: others that want other things of the same name, at about the same time
			for range 1 + a.IntN(6) {
				one := a.job(m)
				one.process, one.names, one.at = e.process, e.names, e.at+a.upTo(20*time.Millisecond)
				if len(one.names) > 1 {
					one.way, one.handoff = several, noHandoff
				}
				p.jobs = append(p.jobs, one)
			}
		}
	}
	for i, e := range p.jobs {
		e.number = i
	}
}

// crossed are two jobs that take two names in opposite order, at about the same time.
func (a *artist) crossed(m *menu) {
	at := a.when()
	for _, name := range []string{"a", "b"} {
		e := a.job(m)
		e.at, e.names, e.way, e.kind, e.handoff = at+a.upTo(5*time.Millisecond), []string{name}, do, exclusive, noHandoff
		e.hold, e.steps = a.upTo(20*time.Millisecond), []step{cross}
		a.scenario.jobs = append(a.scenario.jobs, e)
	}
}

func (a *artist) job(m *menu) *job {
	ttl := a.scenario.ttl
	e := &job{
		process: a.IntN(2), at: a.when(), names: []string{pick(a, m.names...)},
		way: pick(a, m.ways...), kind: pick(a, m.kinds...), limit: 2 + a.IntN(2), wait: core.WaitForever,
		leave: pick(a, m.leaves...), leaves: pick(a, a.upTo(100*time.Millisecond), a.upTo(ttl), a.upTo(2*ttl)),
		bound: pick(a, m.bounds...), deaf: m.deaf && a.coin(), ending: pick(a, m.endings...), choice: a.IntN(100),
		hold: pick(a, 0, a.upTo(5*time.Millisecond), a.upTo(ttl/4), a.upTo(ttl)),
	}
	if m.labels {
		e.label = pick(a, byDefault, byDefault, byDefault, labelled, unlabeled, operation)
	}
	for range a.IntN(4) {
		e.steps = append(e.steps, pick(a, m.steps...))
	}
	if m.budgets && a.coin() {
		e.wait = pick(a, 0, a.upTo(ttl), a.upTo(2*ttl)).Truncate(time.Millisecond)
	}
	if a.IntN(8) == 0 {
		e.ttl = 2 * ttl
	}
	switch {
	case m.several && a.IntN(3) == 0:
		e.way, e.names = several, []string{"a", "b", "c"}[a.IntN(2):]
	case m.handoffs && a.coin() && e.kind != reader && e.kind != limited:
		e.handoff = pick(a, someHandoff, staleHandoff)
	}
	if e.kind == exclusive && m.local {
		e.local = a.IntN(3) > 0
	}
	e.minHold = pick(a, a.upTo(ttl/2), a.upTo(2*ttl)).Truncate(time.Millisecond) + time.Millisecond
	return e
}

// weather gives a process's link its spells.
func (a *artist) weather(process int) {
	p := a.scenario
	fates := some(a, []lab.Fate{lab.Refused, lab.RequestLost},
		lab.ReplyLost, lab.ReplyReset, lab.HeldBack, lab.ReplyHeldBack)
	ops := []lab.Op{
		lab.OpAcquire, lab.OpRenew, lab.OpRelease, lab.OpWait,
	}
	for range 1 + a.IntN(6) {
		s := spell{process: process, at: a.when(), ops: ops, fate: pick(a, fates...), deliver: a.coin()}
		s.lasts = pick(a, a.upTo(p.ttl/3), a.upTo(p.ttl), a.upTo(2*p.ttl))
		if a.IntN(4) == 0 {
			s.ops = ops[a.IntN(len(ops)):][:1]
		}
		switch a.IntN(6) {
		case 0:
			s.there, s.back = a.upTo(p.ttl/2), a.upTo(p.ttl/2)
		case 1:
			s.there, s.back = a.upTo(p.ttl/20), a.upTo(p.ttl/20)
		case 2, 3:
			s.fate = pick(a, lab.Delivered, s.fate)
			for range 1 + a.IntN(5) {
				s.next = append(s.next, pick(a, pick(a, fates...), lab.Delivered))
			}
		}
		p.spells = append(p.spells, s)
	}
}
