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
	waits   []*waiting                   // Waits under way
	watched map[*hold.Hold]*timer        // when the watchdog looks at a hold
	since   map[*hold.Hold]time.Duration // when holds began
}

func newProcess(s *sim, name string) *process {
	p := &process{sim: s, name: name, watched: map[*hold.Hold]*timer{}, since: map[*hold.Hold]time.Duration{}}
	p.place = &contend.Place{
		Table: contend.NewTable(), Site: hold.Site{Watch: p, Keeper: p},
		Can: driver.Capabilities{Hears: !s.world.deaf, Block: true, Fence: true, Dedup: true, Keep: true},
	}
	return p
}

// Watch implements hold.Watch.
func (p *process) Watch(h *hold.Hold) {
	p.watched[h] = new(timer)
	p.since[h] = p.now
}

// Set implements hold.Watch.
func (p *process) Set(h *hold.Hold, at clock.Awake, _ time.Duration) {
	t := p.watched[h]
	if t == nil {
		return
	}
	t.off = true
	if at != clock.Never {
		p.watched[h] = p.after(max(0, time.Duration(at)-p.now), p.name+" watchdog", true, func() { p.look(h) })
	}
}

// Leave implements hold.Watch.
func (p *process) Leave(h *hold.Hold) {
	if t := p.watched[h]; t != nil {
		t.off = true
	}
	delete(p.watched, h)
}

// look is a tick of the watchdog. It is not preempted until the contexts have ended.
func (p *process) look(h *hold.Hold) {
	if h.Look(p.reading()) {
		p.spawn(p.name+" renewer", func(a *agent) { p.renew(a, h) })
	}
}

func (p *process) renew(a *agent, h *hold.Hold) {
	asked := p.reading()
	c, patience, ok := h.Renewal(asked)
	if !ok {
		return
	}
	p.say("%s renews for %s", p.name, c.TTL)
	r, _ := p.ask(a, "renewal of "+p.name, patience, c.TTL, func() (answer, []note) {
		return answer{err: p.server.renew(p.theirs(p.now), c)}, nil
	}, nil)
	h.Renewed(c, asked, p.reading(), r.Err)
}

// Lost implements hold.Keeper. It is an agent, because others can move before it is done.
func (p *process) Lost(h *hold.Hold) {
	p.spawn(p.name+" loses", func(a *agent) { p.carry(a, p.place.Lost(h, p.reading())) })
}

// Renewed implements hold.Keeper.
func (p *process) Renewed(*hold.Hold, time.Duration, error) {}

// carry does what a step says is done first: each is an effect.
func (p *process) carry(a *agent, s contend.Step) {
	if s.Start != nil {
		a.pause()
		p.start(s.Start)
	}
	if s.Behind != nil && s.Clean != (claim.Cleanup{}) {
		a.pause()
		p.clean(s.Behind, s.Clean)
	}
}

// executes is what the server does for a command.
type executes = func() (answer, []note)

// ask sends a command that the server executes by run, and has a wait for its answer, for bound at most. late has what comes after that.
func (p *process) ask(a *agent, what string, bound, stuck time.Duration, run executes, late func(answer)) (r call.Reply, ok bool) {
	asked, over := p.now, false
	t := p.after(bound, "no answer: "+what, false, func() { r, over = p.reply(answer{}, asked, false), true })
	p.command(what, bound+stuck-ms, run, func(x answer) {
		switch {
		case !over:
			t.off = true
			r, ok, over = p.reply(x, asked, true), true, true
		case late != nil:
			late(x)
		}
	})
	a.until(func() bool { return over })
	return r, ok
}

// command is on its way to the server, which executes it by run, and then its answer is on the way to got. Both may be late.
func (p *process) command(what string, late time.Duration, run executes, got func(answer)) {
	p.send(what, late, func() {
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
		p.send("answer to "+what, late, func() { got(x) })
	})
}

// note sends a message to whoever waits with a token.
func (s *sim) note(n note) {
	if s.world.deaf {
		return
	}
	s.send(fmt.Sprintf("note to %.4s, granted %t", n.token, n.granted), 10*time.Second, func() {
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

func (p *process) reply(x answer, asked time.Duration, ok bool) call.Reply {
	if !ok {
		x.err = call.ErrNoAnswer
	}
	return call.Reply{Grant: x.grant, Err: x.err, Asked: at(asked), Now: p.reading()}
}

// late is what claim.Claim.Late does with an outcome that comes too late.
func (p *process) late(c *claim.Claim, op call.Op, x answer) {
	if c.Outcome(op, driver.Explain(x.err)) {
		p.spawn(p.name+" cleans up behind a late command", func(a *agent) { p.once(a, c, 4) })
	}
}

// once sends a release that cleans up, until it is answered. It says whether it was.
func (p *process) once(a *agent, c *claim.Claim, tries int) bool {
	for ; ; tries-- {
		x, settles := c.Cleaner(), c.Settles()
		r, ok := p.ask(a, "clean-up of "+p.name, driver.Patience(x.TTL)/2, x.TTL, func() (answer, []note) {
			return p.server.release(p.theirs(p.now), x)
		}, nil)
		if m := r.Meaning(); ok || tries == 1 {
			c.Cleaned(m, settles)
			return m.Answered()
		}
	}
}

// clean is claim.Desk.Clean: it goes on until the time of a late command is over, and longer if there is no answer.
func (p *process) clean(c *claim.Claim, x claim.Cleanup) {
	p.spawn(p.name+" cleans up", func(a *agent) {
		if x.Once && !p.once(a, c, 4) {
			x.For = max(x.For, driver.PlaceLife(c.Cleaner().TTL))
		}
		until, latest := p.now+x.For, p.now+max(3*x.For, 2*time.Second)
		for p.now < latest && c.Doubtful() {
			p.sleep(a, max(ms, min(until-p.now, max((until-p.now)/2, 500*ms))), "sweep")
			last := p.now >= until
			if answered := p.once(a, c, 1); last && answered {
				return
			}
			if last {
				until = p.now + 50*ms
			}
		}
	})
}
