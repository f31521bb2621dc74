package explore

import (
	"fmt"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/contend"
	"github.com/holdfast-go/holdfast/core/internal/hold"
)

// process is one process. It carries the steps of the engine out, as contend.Room does.
type process struct {
	*sim

	name    string
	place   *contend.Place
	callers []*player
	waits   []*waiting // Waits under way
	watched map[*hold.Hold]*watched
	looks   uint64
	since   map[*hold.Hold]time.Duration // when holds began
}

// watched is what the watchdog of a process knows of a hold.
type watched struct {
	timer *timer
}

func newProcess(s *sim, name string) *process {
	p := &process{sim: s, name: name, watched: map[*hold.Hold]*watched{}, since: map[*hold.Hold]time.Duration{}}
	p.place = &contend.Place{
		Table: contend.NewTable(), Site: hold.Site{Watch: p, Keeper: p},
		Can: driver.Capabilities{Hears: !s.world.deaf, Block: true, Fence: true, Dedup: true, Keep: true},
	}
	return p
}

// Watch implements hold.Watch.
func (p *process) Watch(h *hold.Hold) {
	p.watched[h] = &watched{}
	p.since[h] = p.now
}

// Set implements hold.Watch.
func (p *process) Set(h *hold.Hold, at clock.Awake, _ time.Duration) {
	w := p.watched[h]
	if w == nil {
		return
	}
	if w.timer != nil {
		w.timer.off = true
	}
	if at == clock.Never {
		return
	}
	w.timer = p.after(max(0, time.Duration(at)-p.now), p.name+" watchdog", true, func() { p.look(h) })
}

// Leave implements hold.Watch.
func (p *process) Leave(h *hold.Hold) {
	if w := p.watched[h]; w != nil && w.timer != nil {
		w.timer.off = true
	}
	delete(p.watched, h)
}

// look is a tick of the watchdog. It is not preempted until the contexts have ended.
func (p *process) look(w *hold.Hold) {
	if !w.Look(p.reading()) {
		return
	}
	a := p.spawn(p.name + " renewer")
	a.then(func() {
		asked := p.reading()
		c, patience, ok := w.Renewal(asked)
		if !ok {
			a.done = true
			return
		}
		p.say("%s renews for %s", p.name, c.TTL)
		p.ask("renewal of "+p.name, patience, c.TTL, func() (answer, []note) { return answer{err: p.server.renew(p.theirs(p.now), c)}, nil },
			func(x answer, ok bool) {
				if !ok {
					x.err = call.ErrNoAnswer
				}
				a.then(func() { w.Renewed(c, asked, p.reading(), x.err); a.done = true })
			}, nil)
	})
}

// Lost implements hold.Keeper. It is an agent, because others can move before it is done.
func (p *process) Lost(h *hold.Hold) {
	a := p.spawn(p.name + " loses")
	a.then(func() {
		s := p.place.Lost(h, p.reading())
		p.carry(a, s)
		a.done = true
	})
}

// Renewed implements hold.Keeper.
func (p *process) Renewed(*hold.Hold, time.Duration, error) {}

// carry does what a step says is done first: each is an effect.
func (p *process) carry(a *agent, s contend.Step) {
	if s.Start != nil {
		a.then(func() { p.start(s.Start) })
	}
	if s.Behind != nil && s.Clean != (claim.Cleanup{}) {
		a.then(func() { p.clean(s.Behind, s.Clean) })
	}
}

// ask sends a command that the server executes by run. got hears the answer, or that there was none within bound; late hears it
// after that.
func (p *process) ask(what string, bound, stuck time.Duration, run func() (answer, []note), got func(answer, bool), late func(answer)) *timer {
	over := false
	t := p.after(bound, "no answer: "+what, false, func() { over = true; got(answer{}, false) })
	p.send(what, true, bound+stuck-ms, func() {
		var x answer
		var notes []note
		if down := p.world.down; p.now >= down[0] && p.now < down[1] {
			x.err = driver.ErrCannotAnswer
		} else {
			x, notes = run()
		}
		p.say("  %v %v; %v", x.grant.Fence, x.err, &p.server)
		for _, n := range notes {
			p.note(n)
		}
		p.send("answer to "+what, true, bound+stuck-ms, func() {
			switch {
			case !over:
				t.off = true
				got(x, true)
			case late != nil:
				late(x)
			}
		})
	})
	return t
}

// note sends a message to whoever waits with a token.
func (s *sim) note(n note) {
	if s.world.deaf {
		return
	}
	s.send(fmt.Sprintf("note to %.4s, granted %t", n.token, n.granted), true, 10*time.Second, func() {
		for _, p := range s.procs {
			for _, w := range p.waits {
				if w.claim.Token == n.token {
					w.hear(n)
					return
				}
			}
		}
	})
}

func meaning(x answer) driver.Meaning { return driver.Explain(x.err) }

func (p *process) reply(x answer, asked time.Duration, ok bool) call.Reply {
	if !ok {
		x.err = call.ErrNoAnswer
	}
	return call.Reply{Grant: x.grant, Err: x.err, Asked: at(asked), Now: p.reading()}
}

// late is what claim.Claim.Late does with an outcome that comes too late.
func (p *process) late(c *claim.Claim, op call.Op, x answer) {
	if c.Outcome(op, meaning(x)) {
		a := p.spawn(p.name + " cleans up behind a late command")
		a.then(func() { p.once(a, c, 4, func(driver.Meaning) { a.done = true }) })
	}
}

// once sends a release that cleans up, until it is answered.
func (p *process) once(a *agent, c *claim.Claim, tries int, then func(driver.Meaning)) {
	r, settles := c.Cleaner(), c.Settles()
	p.ask("clean-up of "+p.name, driver.Patience(r.TTL)/2, r.TTL, func() (answer, []note) { return p.server.release(p.theirs(p.now), r) },
		func(x answer, ok bool) {
			if ok || tries == 1 {
				m := driver.Meaning{}
				if ok {
					m = meaning(x)
				}
				a.then(func() { c.Cleaned(m, settles); then(m) })
				return
			}
			p.once(a, c, tries-1, then)
		}, nil)
}

// clean is claim.Desk.Clean.
func (p *process) clean(c *claim.Claim, x claim.Cleanup) {
	a := p.spawn(p.name + " cleans up")
	sweep := func() { p.sweep(a, c, p.now+x.For, p.now+max(3*x.For, 2*time.Second)) }
	if !x.Once {
		a.then(sweep)
		return
	}
	a.then(func() {
		p.once(a, c, 4, func(m driver.Meaning) {
			if !m.Answered() {
				x.For = max(x.For, driver.PlaceLife(c.Cleaner().TTL))
			}
			sweep()
		})
	})
}

// sweep cleans up until the time of a late command is over, and longer if there is no answer.
func (p *process) sweep(a *agent, c *claim.Claim, until, latest time.Duration) {
	if p.now >= latest || !c.Doubtful() {
		a.done = true
		return
	}
	p.after(max(ms, min(until-p.now, max((until-p.now)/2, 500*ms))), "sweep", false, func() {
		a.then(func() {
			last := p.now >= until
			p.once(a, c, 1, func(m driver.Meaning) {
				if last && m.Answered() {
					a.done = true
					return
				}
				if last {
					until = p.now + 50*ms
				}
				p.sweep(a, c, until, latest)
			})
		})
	})
}
