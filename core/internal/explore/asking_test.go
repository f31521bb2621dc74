package explore

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/contend"
)

// asking carries out the steps of an asker.
type asking struct {
	*process

	agent  *agent
	steps  *contend.Asker
	wait   *waiting
	rest   *timer
	broken bool
}

func (p *process) start(steps *contend.Asker) {
	a := &asking{process: p, steps: steps, agent: p.spawn(p.name + " asker")}
	a.agent.then(a.next)
}

func (a *asking) next() {
	a.broken = false
	a.carryOn(a.steps.Next(a.awake(), a.breakOff))
}

// breakOff ends the round, because nobody waits any more.
func (a *asking) breakOff() {
	a.broken = true
	if a.wait != nil {
		a.wait.end()
	}
	if a.rest != nil && !a.rest.off {
		a.rest.off = true
		a.agent.then(a.next)
	}
}

func (a *asking) carryOn(s contend.Step) {
	a.carry(a.agent, s)
	switch s.Do {
	case contend.Again:
		a.agent.then(a.next)
	case contend.Pause:
		a.agent.then(func() { a.rest = a.after(s.For, "the asker's pause", false, func() { a.agent.then(a.next) }) })
	case contend.Send:
		a.agent.then(func() { a.send(s) })
	case contend.Over:
		a.agent.done = true
		if len(a.agent.todo) == 0 {
			a.agents = slices.DeleteFunc(a.agents, func(b *agent) bool { return a.agent == b })
		}
	default:
		a.fail("asker: %d", s.Do)
	}
}

func (a *asking) send(s contend.Step) {
	c := s.Claim.Ask(call.Wait, &s.Want.Wish, s.Fences)
	a.say("asker of %s waits with %.4s for %s", a.name, c.Token, c.TTL)
	answered := func(x answer, asked time.Duration, ok bool) {
		r := a.reply(x, asked, ok)
		s.Claim.Answer(r.Now.Awake(), r.Meaning())
		broken := a.broken
		a.agent.then(func() { a.carryOn(a.steps.Answered(r, broken)) })
	}
	late := func(x answer) { a.late(s.Claim, call.Wait, x) }
	w := &waiting{process: a.process, claim: c, late: late, heard: func(h *driver.Held) { a.steps.Heard(a.awake(), h) }}
	w.done = func(x answer, asked time.Duration, ok bool) {
		a.wait = nil
		answered(x, asked, ok)
	}
	a.wait = w
	w.begin(s.For)
	if a.broken {
		w.end()
	}
}

// waiting is a Wait of the driver: it looks, and hears.
type waiting struct {
	*process

	claim  driver.Claim
	done   func(x answer, asked time.Duration, ok bool)
	late   func(answer)
	heard  func(*driver.Held)
	bound  *timer
	look   look
	asked  time.Duration
	said   *driver.Held // by the last look
	asks   bool         // a look is under way
	over   bool
	rounds time.Duration
	sent   *message // the look
}

func (w *waiting) begin(bound time.Duration) {
	w.waits = append(w.waits, w)
	w.rounds = bound
	w.bound = w.after(bound, "the end of a round", false, w.end)
	w.send()
}

// send looks.
func (w *waiting) send() {
	w.looks++
	w.nonces++
	l := look{w.claim, w.looks, w.nonces}
	w.look, w.asked, w.asks = l, w.now, true
	asked := w.asked
	t := w.ask("look of "+w.name, w.left(), w.claim.TTL, func() (answer, []note) { return w.server.wait(w.theirs(w.now), l, !w.world.deaf) },
		func(x answer, ok bool) {
			if ok {
				w.answered(x, asked, l)
			}
		}, func(x answer) { w.late(x) })
	t.off = true // the round's own bound counts
	w.sent = w.messages[len(w.messages)-1]
}

func (w *waiting) answered(x answer, asked time.Duration, l look) {
	if w.over {
		w.late(x)
		return
	}
	h, held := x.err.(*driver.Held) //nolint:errorlint // made by the server
	if !held {
		w.finish(x, asked, true)
		return
	}
	if l.number != w.look.number {
		return
	}
	w.asks, w.said = false, h
	w.heard(h)
	if w.world.deaf {
		w.after(100*ms, "the next look", false, func() {
			if !w.over && !w.asks {
				w.send()
			}
		})
	}
}

// hear takes a message. Only that of the very look grants anything.
func (w *waiting) hear(n note) {
	switch {
	case w.over:
	case n.granted && n.nonce == w.look.nonce:
		w.finish(answer{grant: n.grant}, w.asked, true)
	case !n.granted && !w.asks:
		w.send()
	}
}

// end is the end of the round.
func (w *waiting) end() {
	if w.over {
		return
	}
	if w.asks || w.said == nil {
		w.sent.until = min(w.sent.until, w.now+w.claim.TTL-ms) // a command does not come later than a TTL after it was given up
		w.finish(answer{}, 0, false)
		return
	}
	w.finish(answer{err: w.said}, 0, true)
}

func (w *waiting) finish(x answer, asked time.Duration, ok bool) {
	w.over, w.bound.off = true, true
	w.waits = slices.DeleteFunc(w.waits, func(v *waiting) bool { return v == w })
	w.done(x, asked, ok)
}

// left is what is left of the round.
func (w *waiting) left() time.Duration { return max(0, w.bound.at-w.now) }
