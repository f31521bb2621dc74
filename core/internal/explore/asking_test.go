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
	c := s.Claim.Ask(call.Wait, &s.Want.Wish, s.Fences)
	x.say("asker of %s waits with %.4s for %s", x.name, c.Token, c.TTL)
	var r call.Reply
	over := false
	x.wait = &waiting{
		process: x.process, claim: c,
		heard: func(h *driver.Held) { x.steps.Heard(x.awake(), h) },
		late:  func(y answer) { x.late(s.Claim, call.Wait, y) },
		done:  func(y answer, asked time.Duration, ok bool) { r, over = x.reply(y, asked, ok), true },
	}
	x.wait.begin(s.For)
	if x.broken {
		x.wait.end()
	}
	a.until(func() bool { return over })
	x.wait = nil
	s.Claim.Answer(r.Now.Awake(), r.Meaning())
	return x.steps.Answered(r, x.broken)
}

// waiting is a Wait of the driver: it looks, and hears.
type waiting struct {
	*process

	claim driver.Claim
	done  func(x answer, asked time.Duration, ok bool)
	late  func(answer)
	heard func(*driver.Held)
	bound *timer
	look  look
	asked time.Duration
	said  *driver.Held // by the last look
	asks  bool         // a look is under way
	over  bool
	sent  *message // the look
}

func (w *waiting) begin(bound time.Duration) {
	w.waits = append(w.waits, w)
	w.bound = w.after(bound, "the end of a round", false, w.end)
	w.send()
}

// send looks.
func (w *waiting) send() {
	w.nonces++
	l := look{w.claim, w.nonces}
	w.look, w.asked, w.asks = l, w.now, true
	asked := w.asked
	w.command("look of "+w.name, w.left()+w.claim.TTL-ms, func() (answer, []note) { return w.server.wait(w.theirs(w.now), l, !w.world.deaf) },
		func(x answer) { w.answered(x, asked, l) })
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
	if l.nonce != w.look.nonce {
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
