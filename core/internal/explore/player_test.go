package explore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/contend"
	"github.com/holdfast-go/holdfast/core/internal/hold"
	"github.com/holdfast-go/holdfast/core/internal/term"
)

// player plays one caller, from its call until the end of its work.
type player struct {
	*process

	is     caller
	name   string
	agent  *agent
	steps  *contend.Caller
	work   *work
	listen bool
	hears  bool
	began  time.Duration
	ended  time.Duration
	until  time.Duration // until when it was trusted then
	said   bool          // its last release was answered
	leaves time.Duration // when the end of its hold began
	gone   error         // its caller has left
	over   bool
	got    *hold.Hold
	err    error
}

// work is what a caller does under its hold.
type work struct {
	player *player
	ended  bool // its contexts have ended
	why    term.Loss
}

// Values implements hold.Work.
func (w *work) Values() context.Context { return nil }

// Stop implements hold.Work.
func (w *work) Stop(why term.Loss) {
	w.player.say("%s is stopped: %d", w.player.name, why)
	w.end(why)
}

func (w *work) end(why term.Loss) {
	if !w.ended {
		w.ended, w.why = true, why
		s := w.player.sim
		s.live = slices.DeleteFunc(s.live, func(x *work) bool { return x == w })
	}
}

func (p *process) play(is caller, name string) {
	x := &player{process: p, is: is, name: name}
	p.callers = append(p.callers, x)
	x.work = &work{player: x}
	x.agent = p.spawn(name)
	begin := func() {
		x.agent.then(func() {
			x.began = p.now
			x.steps = p.place.NewCaller(p.awake(), is.want(x.work), is.once)
			x.carryOn(x.steps.Next(p.awake()))
		})
	}
	if is.comes == 0 {
		begin()
		return
	}
	p.after(is.comes, name+" comes", false, begin)
}

func (s *sim) leavers() (all []*player) {
	for _, p := range s.procs {
		all = append(all, p.callers...)
	}
	return all
}

func (x *player) mayLeave() bool {
	return x.is.leaves && x.gone == nil && !x.over && x.steps != nil && x.got == nil
}

// leave is the end of its caller's context. If it waits, it goes as soon as it is its turn to move.
func (x *player) leave(err error) {
	x.say("%s is left", x.name)
	x.gone = err
	if x.listen { // rather than hear a word that is there
		x.agent.todo = slices.Insert(x.agent.todo, 0, x.goes)
	}
}

func (x *player) goes() {
	if !x.listen {
		return
	}
	x.listen = false
	s, broken := x.steps.Leave(x.gone)
	x.say("%s leaves, hold %t, broken %t", x.name, s.Hold != nil, broken != nil)
	if broken != nil {
		x.agent.then(broken)
	}
	x.carryOn(s)
}

// hear has x hear its word, if there is one, when it is its turn to move.
func (x *player) hear() {
	if !x.listen || x.hears || len(x.steps.Words()) == 0 {
		return
	}
	x.hears = true
	x.agent.then(func() {
		x.hears = false
		if !x.listen { // it has left instead
			return
		}
		x.listen = false
		x.carryOn(x.steps.Told(<-x.steps.Words()))
	})
}

func (x *player) carryOn(s contend.Step) {
	x.carry(x.agent, s)
	switch s.Do {
	case contend.Again:
		x.agent.then(func() { x.carryOn(x.steps.Next(x.awake())) })
	case contend.Send:
		x.agent.then(func() { x.acquire(s, 4) })
	case contend.Listen:
		x.agent.then(func() {
			x.listen = true
			if x.gone != nil {
				x.agent.then(x.goes)
			}
		})
	case contend.Watch:
		x.watch(s)
	case contend.Over:
		x.agent.then(func() { x.end(s) })
	default:
		x.fail("%s: %d", x.name, s.Do)
	}
}

func (x *player) watch(s contend.Step) {
	done := false
	x.after(max(0, s.For), x.name+" is not patient any more", false, func() {
		if !done {
			done = true
			x.agent.then(func() { x.end(contend.Step{Do: contend.Over, Err: contend.ErrSilent}) })
		}
	})
	var poll func()
	poll = func() {
		if done {
			return
		}
		select {
		case <-s.Changed:
			done = true
			x.agent.then(func() { x.carryOn(x.steps.Next(x.awake())) })
		default:
			x.polls = append(x.polls, poll)
		}
	}
	poll()
}

// acquire sends an attempt, and sends it again.
func (x *player) acquire(s contend.Step, tries int) {
	c, asked := s.Claim.Ask(call.Acquire, &s.Want.Wish, s.Fences), x.now
	x.say("%s asks with %.4s for %s", x.name, c.Token, c.TTL)
	x.ask("attempt of "+x.name, s.For/2, s.Want.Lifetime(), func() (answer, []note) { return x.server.acquire(x.theirs(x.now), c) },
		func(a answer, ok bool) {
			r := x.reply(a, asked, ok)
			s.Claim.Answer(r.Now.Awake(), r.Meaning())
			if !ok && tries > 1 {
				x.agent.then(func() { x.acquire(s, tries-3) })
				return
			}
			x.agent.then(func() { x.carryOn(x.steps.Answered(r, x.gone)) })
		}, func(a answer) { x.late(s.Claim, call.Acquire, a) })
}

// end is the end of the call.
func (x *player) end(s contend.Step) {
	x.err, x.ended = s.Err, x.now
	if s.Hold == nil {
		x.say("%s: %v", x.name, s.Err)
		x.over, x.agent.done = true, true
		return
	}
	x.got = s.Hold
	if x.err = x.gone; x.err != nil {
		s.Hold.Forgo()
		x.work.end(term.None)
		l := x.place.NewLeaver(s.Hold, claim.Left{})
		x.finish(&l)
		return
	}
	x.begin()
}

func (x *player) begin() {
	turn := x.got.Term()
	x.say("%s works, fence %d", x.name, turn.Fence())
	if !x.work.ended {
		if x.now < x.takenUntil-x.takenUntil/50-2*ms {
			x.fail("%s works at %s, and the name is to stay taken until %s", x.name, x.now, x.takenUntil)
		}
		if x.is.takes && x.faults == 0 && !x.before.hands && !x.before.takes {
			x.fail("%s takes over, and somebody else has worked in between", x.name)
		}
		x.before = x.is
		if x.is.minHold > 0 {
			x.takenUntil = time.Duration(turn.Begun()) + x.is.minHold
		}
		x.live = append(x.live, x.work)
		if x.is.scope != "" && x.server.marked[x.is.scope] {
			x.fail("%s works, and its work is done", x.name)
		}
		f := turn.Fence()
		if f <= x.fenced && !together(x.is.limit) { // of those who share, any may be the first to hear
			x.fail("%s works with fence %d after %d", x.name, f, x.fenced)
		}
		x.fenced = max(x.fenced, f)
	}
	works := x.is.works
	if works == 0 {
		works = 10 * ms
	}
	x.after(works, x.name+" is done", false, func() {
		x.agent.then(func() {
			x.work.end(term.None) // its contexts first
			x.say("%s ends its work", x.name)
		}, func() {
			left := claim.Left{Mark: x.is.scope != "" && x.work.why == term.None}
			if x.is.hands {
				left.Keep, left.Handoff = 2*time.Second, "secret"
			}
			l := x.place.NewLeaver(x.got, left)
			x.finish(&l)
		})
	})
}

// finish carries out the end of the hold.
func (x *player) finish(l *contend.Leaver) {
	x.leaves, x.until = x.now, x.now+x.got.Remaining(x.awake())
	x.leaving(l, l.Next(x.reading()))
}

func (x *player) leaving(l *contend.Leaver, s contend.Step) {
	x.carry(x.agent, s)
	switch s.Do {
	case contend.Again:
		x.agent.then(func() {
			if x.now-x.leaves >= l.Patience() {
				x.leaving(l, l.GiveUp(x.reading()))
				return
			}
			x.leaving(l, l.Next(x.reading()))
		})
	case contend.Idle:
		idle := l.Idle()
		var poll func()
		poll = func() {
			select {
			case <-idle:
				x.agent.then(func() { x.leaving(l, l.Next(x.reading())) })
			default:
				x.polls = append(x.polls, poll)
			}
		}
		if idle == nil {
			x.agent.then(func() { x.leaving(l, l.Next(x.reading())) })
			return
		}
		poll()
	case contend.Send:
		if x.err != nil && l.Ask.Keep > 0 {
			x.fail("%s has received nothing, and keeps the name", x.name)
		}
		x.agent.then(func() {
			x.ask("release of "+x.name, s.For/2, l.Ask.TTL, func() (answer, []note) { return x.server.release(x.theirs(x.now), l.Ask) },
				func(a answer, ok bool) {
					r := x.reply(a, x.now, ok)
					x.said = ok && !errors.Is(a.err, driver.ErrCannotAnswer)
					x.agent.then(func() { x.leaving(l, l.Answered(r)) })
				}, nil)
		})
	case contend.Over:
		if since, ok := x.since[x.got]; ok && s.Behind == nil && l.Outcome.Result == term.Freed && x.now-since >= term.Turns {
			x.fail("%s passes on what was granted %s ago", x.name, x.now-since)
		}
		x.agent.then(func() {
			x.say("%s is over: %+v", x.name, l.Outcome)
			if l.Outcome.Result == term.Unconfirmed && x.said && x.now < x.until {
				x.fail("%s does not know what it was told", x.name)
			}
			if l.Outcome.Result == term.Freed && s.Behind == nil && x.work.why != term.None && x.work.why != term.MaxHold {
				x.fail("%s was lost, and does not know it", x.name)
			}
			if l.Outcome.Result != term.Freed {
				token := x.got.Claim.Cleaner().Token
				x.excused[token], x.kept[token] = true, l.Outcome.Result == term.Unconfirmed && l.Outcome.Cleanup == claim.Cleanup{}
			}
			x.over, x.agent.done = true, true
		})
	default:
		x.fail("%s leaves: %d", x.name, s.Do)
	}
}

func (x *player) String() string { return fmt.Sprintf("%s: over %t, %v", x.name, x.over, x.err) }

// justified says whether a call may have ended like that.
func (x *player) justified() bool {
	var here *driver.Held
	var done *driver.Duplicate
	switch {
	case x.err == nil:
		return x.got != nil
	case errors.Is(x.err, errLeft):
		return x.gone != nil
	case errors.As(x.err, &done):
		return x.is.scope != "" && x.server.marked[x.is.scope]
	case x.is.takes:
		other := func(y *player) bool { return y != x && y.is.takes && y.got != nil }
		return x.faults > 0 || slices.ContainsFunc(x.leavers(), other) // it may come too late, or nobody has left it a name
	case x.is.once:
		return errors.As(x.err, &here) || x.faults > 0 || x.world.down[1] > 0 || x.ended-x.began >= driver.Patience(x.steps.Want.TTL)/2
	default: // nobody has answered for a TTL
		silent := errors.Is(x.err, call.ErrNoAnswer) && x.faults > 0 || errors.Is(x.err, driver.ErrCannotAnswer) && x.world.down[1] > 0
		return silent && x.ended-x.began >= x.steps.Want.TTL
	}
}
