package explore

import (
	"cmp"
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

// player plays one caller, from its call until the end of its work under the hold.
type player struct {
	*process

	is      caller
	name    string
	steps   *contend.Caller
	began   time.Duration
	ended   time.Duration
	until   time.Duration // until when it was trusted then
	said    bool          // its last release was answered
	gone    error         // its caller has left
	over    bool
	got     *hold.Hold
	err     error
	stopped bool // the contexts of its work have ended
	why     term.Loss
}

// Values implements hold.Work.
func (x *player) Values() context.Context { return nil }

// Stop implements hold.Work.
func (x *player) Stop(why term.Loss) {
	x.say("%s is stopped: %d", x.name, why)
	x.stop(why)
}

func (x *player) stop(why term.Loss) {
	if !x.stopped {
		x.stopped, x.why = true, why
		x.live = slices.DeleteFunc(x.live, func(y *player) bool { return y == x })
	}
}

func (p *process) play(is caller, name string) {
	x := &player{process: p, is: is, name: name}
	p.callers = append(p.callers, x)
	p.spawn(name, x.run)
}

func (x *player) run(a *agent) {
	if x.is.comes > 0 {
		x.sleep(a, x.is.comes, x.name+" comes")
	}
	x.began = x.now
	x.steps = x.place.NewCaller(x.awake(), x.is.want(x), x.is.once)
	s := x.steps.Next(x.awake())
	for s.Do != contend.Over {
		x.carry(a, s)
		a.pause()
		switch s.Do {
		case contend.Again:
			s = x.steps.Next(x.awake())
		case contend.Send:
			s = x.attempt(a, s)
		case contend.Listen:
			s = x.listen(a)
		case contend.Watch:
			s = x.watch(a, s)
		default:
			x.fail("%s: %d", x.name, s.Do)
		}
	}
	x.carry(a, s)
	a.pause()
	x.end(a, s)
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

// attempt asks, and asks again.
func (x *player) attempt(a *agent, s contend.Step) contend.Step {
	for again := true; ; again = false {
		c := s.Claim.Ask(call.Acquire, &s.Want.Wish, s.Fences)
		x.say("%s asks with %.4s for %s", x.name, c.Token, c.TTL)
		r, ok := x.ask(a, "attempt of "+x.name, s.For/2, s.Want.Lifetime(), func() (answer, []note) {
			return x.server.acquire(x.theirs(x.now), c)
		}, func(y answer) { x.late(s.Claim, call.Acquire, y) })
		s.Claim.Answer(r.Now.Awake(), r.Meaning())
		if ok || !again {
			return x.steps.Answered(r, x.gone)
		}
	}
}

// listen waits for a word. Whose caller has left goes, rather than hear a word that is there.
func (x *player) listen(a *agent) contend.Step {
	a.until(func() bool { return x.gone != nil || len(x.steps.Words()) > 0 })
	if x.gone == nil {
		return x.steps.Told(<-x.steps.Words())
	}
	s, broken := x.steps.Leave(x.gone)
	x.say("%s leaves, hold %t, broken %t", x.name, s.Hold != nil, broken != nil)
	if broken != nil {
		a.pause()
		broken()
	}
	return s
}

func (x *player) watch(a *agent, s contend.Step) contend.Step {
	changed, over := false, false
	x.after(max(0, s.For), x.name+" is not patient any more", false, func() { over = true })
	a.until(func() bool {
		select {
		case <-s.Changed:
			changed = true
		default:
		}
		return changed || over
	})
	if over {
		return contend.Step{Do: contend.Over, Err: contend.ErrSilent}
	}
	return x.steps.Next(x.awake())
}

// end is the end of the call, and the work if it has a hold.
func (x *player) end(a *agent, s contend.Step) {
	x.err, x.ended = s.Err, x.now
	if s.Hold == nil {
		x.say("%s: %v", x.name, s.Err)
		x.over = true
		return
	}
	var left claim.Left
	x.got = s.Hold
	if x.err = x.gone; x.err != nil {
		s.Hold.Forgo()
		x.stop(term.None)
	} else {
		left = x.works(a)
	}
	l := x.place.NewLeaver(x.got, left)
	x.until = x.now + x.got.Remaining(x.awake())
	x.leave(a, &l)
}

// works begins and ends the work. It says how to leave the name.
func (x *player) works(a *agent) (left claim.Left) {
	turn := x.got.Term()
	x.say("%s works, fence %d", x.name, turn.Fence())
	if !x.stopped {
		x.begin(turn)
	}
	x.sleep(a, cmp.Or(x.is.works, 10*ms), x.name+" is done")
	x.stop(term.None) // its contexts first
	x.say("%s ends its work", x.name)
	a.pause()
	left.Mark = x.is.scope != "" && x.why == term.None
	if x.is.hands {
		left.Keep, left.Handoff = 2*time.Second, "secret"
	}
	return left
}

// begin looks whether x may work.
func (x *player) begin(turn term.Term) {
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
	x.live = append(x.live, x)
	if x.is.scope != "" && x.server.marked[x.is.scope] {
		x.fail("%s works, and its work is done", x.name)
	}
	f := turn.Fence()
	if f <= x.fenced && !together(x.is.limit) { // of those who share, any may be the first to hear
		x.fail("%s works with fence %d after %d", x.name, f, x.fenced)
	}
	x.fenced = max(x.fenced, f)
}

// leave carries out the end of the hold.
func (x *player) leave(a *agent, l *contend.Leaver) {
	began, s := x.now, l.Next(x.reading())
	for s.Do != contend.Over {
		x.carry(a, s)
		a.pause()
		switch s.Do {
		case contend.Again:
			if x.now-began >= l.Patience() {
				s = l.GiveUp(x.reading())
			} else {
				s = l.Next(x.reading())
			}
		case contend.Idle:
			idle := l.Idle()
			a.until(func() bool {
				select {
				case <-idle:
					return true
				default:
					return idle == nil
				}
			})
			s = l.Next(x.reading())
		case contend.Send:
			if x.err != nil && l.Ask.Keep > 0 {
				x.fail("%s has received nothing, and keeps the name", x.name)
			}
			ask := l.Ask
			r, ok := x.ask(a, "release of "+x.name, s.For/2, ask.TTL, func() (answer, []note) {
				return x.server.release(x.theirs(x.now), ask)
			}, nil)
			x.said = ok && !errors.Is(r.Err, driver.ErrCannotAnswer)
			s = l.Answered(r)
		default:
			x.fail("%s leaves: %d", x.name, s.Do)
		}
	}
	if since, ok := x.since[x.got]; ok && s.Behind == nil && l.Outcome.Result == term.Freed && x.now-since >= term.Turns {
		x.fail("%s passes on what was granted %s ago", x.name, x.now-since)
	}
	x.carry(a, s)
	a.pause()
	x.left(s, l.Outcome)
}

// left looks at what the end has come to.
func (x *player) left(s contend.Step, o hold.Outcome) {
	x.say("%s is over: %+v", x.name, o)
	if o.Result == term.Unconfirmed && x.said && x.now < x.until {
		x.fail("%s does not know what it was told", x.name)
	}
	if o.Result == term.Freed && s.Behind == nil && x.why != term.None && x.why != term.MaxHold {
		x.fail("%s was lost, and does not know it", x.name)
	}
	if o.Result != term.Freed {
		token := x.got.Claim.Cleaner().Token
		x.excused[token], x.kept[token] = true, o.Result == term.Unconfirmed && o.Cleanup == claim.Cleanup{}
	}
	x.over = true
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
