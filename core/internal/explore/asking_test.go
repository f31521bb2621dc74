package explore

import (
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/contend"
)

// asking carries out the steps of an asker.
type asking struct {
	*process

	steps  *contend.Asker
	wait   *waiting
	broken bool
}

func (p *process) start(steps *contend.Asker) {
	x := &asking{process: p, steps: steps}
	p.spawn(p.name+" asker", x.run)
}

func (x *asking) run(a *agent) {
	s := x.next()
	for s.Do != contend.Over {
		x.carry(a, s)
		a.pause()
		switch s.Do {
		case contend.Again:
			s = x.next()
		case contend.Pause:
			over := false
			t := x.after(s.For, "the asker's pause", false, func() { over = true })
			a.until(func() bool { return over || x.broken })
			t.off = true
			s = x.next()
		case contend.Send:
			s = x.round(a, s)
		default:
			x.fail("asker: %d", s.Do)
		}
	}
	x.carry(a, s)
}

func (x *asking) next() contend.Step {
	x.broken = false
	return x.steps.Next(x.awake(), x.breakOff)
}

// breakOff ends the round, because nobody waits any more.
func (x *asking) breakOff() {
	x.broken = true
	if x.wait != nil {
		x.wait.end()
	}
}

func (x *asking) round(a *agent, s contend.Step) contend.Step {
	w := &waiting{asking: x, of: s.Claim, claim: s.Claim.Ask(call.Wait, &s.Want.Wish, s.Fences)}
	x.say("asker of %s waits with %.4s for %s", x.name, w.claim.Token, w.claim.TTL)
	x.wait = w
	w.waits = append(w.waits, w)
	w.bound = w.after(s.For, "the end of a round", false, w.end)
	w.send()
	if x.broken {
		w.end()
	}
	a.until(func() bool { return w.over })
	x.wait = nil
	s.Claim.Answer(w.r.Now.Awake(), w.r.Meaning())
	return x.steps.Answered(w.r, x.broken)
}

// waiting is a Wait of the driver: it looks, and hears.
type waiting struct {
	*asking

	of    *claim.Claim
	claim driver.Claim
	bound *timer
	look  look
	sent  *message // the look
	asked time.Duration
	asks  bool         // a look is under way
	said  *driver.Held // by the last look
	over  bool
	r     call.Reply // in the end
}

// send looks.
func (w *waiting) send() {
	w.nonces++
	l := look{w.claim, w.nonces}
	asked := w.now
	w.look, w.asked, w.asks = l, asked, true
	w.command("look of "+w.name, max(0, w.bound.at-w.now)+w.claim.TTL-ms, func() (answer, []note) {
		return w.server.wait(w.theirs(w.now), l, !w.world.deaf)
	}, func(x answer) { w.answered(x, asked, l) })
	w.sent = w.messages[len(w.messages)-1]
}

func (w *waiting) answered(x answer, asked time.Duration, l look) {
	h, held := x.err.(*driver.Held) //nolint:errorlint // made by the server
	switch {
	case w.over:
		w.late(w.of, call.Wait, x)
	case !held:
		w.finish(x, asked, true)
	case l.nonce == w.look.nonce:
		w.asks, w.said = false, h
		w.steps.Heard(w.awake(), h)
		if w.world.deaf {
			w.after(100*ms, "the next look", false, w.again)
		}
	}
}

// again looks, unless a look is under way.
func (w *waiting) again() {
	if !w.over && !w.asks {
		w.send()
	}
}

// hear takes a message. Only that of the very look grants anything.
func (w *waiting) hear(n note) {
	switch {
	case !n.granted:
		w.again()
	case !w.over && n.nonce == w.look.nonce:
		w.finish(answer{grant: n.grant}, w.asked, true)
	}
}

// end is the end of the round.
func (w *waiting) end() {
	switch {
	case w.over:
	case w.asks || w.said == nil:
		w.sent.until = min(w.sent.until, w.now+w.claim.TTL-ms) // a command does not come later than a TTL after it was given up
		w.finish(answer{}, 0, false)
	default:
		w.finish(answer{err: w.said}, 0, true)
	}
}

func (w *waiting) finish(x answer, asked time.Duration, ok bool) {
	w.over, w.bound.off = true, true
	w.waits = slices.DeleteFunc(w.waits, func(v *waiting) bool { return v == w })
	w.r = w.reply(x, asked, ok)
}
