package explore

import (
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// sim is one run: what there is, and what can happen next.
type sim struct {
	world  *world
	now    time.Duration
	server server
	procs  []*process

	agents   []*agent
	messages []*message
	timers   []*timer

	last       *agent // who has moved last
	order      int    // of the default schedule: 0 or 1
	serial     int
	nonces     int
	live       []*player       // who work: their contexts have not ended
	fenced     uint64          // the largest fence that work has begun with
	before     caller          // who has worked last
	takenUntil time.Duration   // by MinHold
	excused    map[string]bool // tokens that may own the name in the end: they were lost, or their release had no answer
	kept       map[string]bool // those of them that nobody cleans up behind, since the name may be kept
	faults     int             // commands and messages that a deviation has lost or held back
	err        error

	tracing bool
	trail   []string
}

// agent is a goroutine. It goes on until its next effect, so that others can move before that, or until it has to wait.
type agent struct {
	what    string
	next    func() (struct{}, bool)
	yield   func(struct{}) bool
	ready   func() bool // what it waits for; nil if it need not wait
	behind  int         // a deviation has passed it over: it comes after all others
	stalled int         // for how many moves of time it stands still
}

// until lets others move, and goes on once ready says so.
func (a *agent) until(ready func() bool) {
	a.ready = ready
	a.yield(struct{}{})
}

// pause lets others move.
func (a *agent) pause() { a.until(nil) }

func (a *agent) waits() bool { return a.ready != nil && !a.ready() }

// message is a command, an answer or a note on its way.
type message struct {
	what    string
	arrives func()
	stuck   bool          // it waits until a deviation, or nothing else, moves it
	until   time.Duration // and arrives by then
}

// timer fires at its time. If it is strict, time does not go on before it has.
type timer struct {
	at     time.Duration
	what   string
	fires  func()
	strict bool
	off    bool
}

func (s *sim) say(format string, args ...any) {
	if s.tracing {
		s.trail = append(s.trail, fmt.Sprintf("%-9s ", s.now)+fmt.Sprintf(format, args...))
	}
}

func (s *sim) fail(format string, args ...any) {
	if s.err == nil {
		s.err = fmt.Errorf(format, args...)
	}
}

func at(d time.Duration) clock.Reading { return clock.Reading{}.Earlier(-d) }

// theirs is a time by the backend's clock, which is one percent faster.
func (s *sim) theirs(d time.Duration) time.Duration { return d + d/101 }

func (s *sim) reading() clock.Reading { return at(s.now) }
func (s *sim) awake() clock.Awake     { return s.reading().Awake() }

// spawn begins an agent. At the end of a run, all have ended.
func (s *sim) spawn(what string, does func(a *agent)) {
	a := &agent{what: what}
	a.next, _ = iter.Pull(func(yield func(struct{}) bool) {
		a.yield = yield
		does(a)
	})
	s.agents = append(s.agents, a)
}

// sleep has a wait for d.
func (s *sim) sleep(a *agent, d time.Duration, what string) {
	over := false
	s.after(d, what, false, func() { over = true })
	a.until(func() bool { return over })
}

func (s *sim) after(d time.Duration, what string, strict bool, fires func()) *timer {
	t := &timer{at: s.now + d, what: what, fires: fires, strict: strict}
	s.timers = append(s.timers, t)
	return t
}

// send puts a message on its way.
func (s *sim) send(what string, late time.Duration, arrives func()) {
	s.messages = append(s.messages, &message{what: what, arrives: arrives, until: s.now + late})
}

// kind of a move.
type kind uint8

const (
	step    kind = iota // an agent
	fire                // a timer that is due
	deliver             // a message
	pass                // time goes on
	lose                // a message is lost
	stick               // or stuck
	stall               // an agent stands still for a while
	quit                // a caller leaves
)

type move struct {
	kind kind
	i    int
}

// moves returns all moves, the default one first. n is how many of them are no faults.
func (s *sim) moves(buf []move) []move {
	ms := buf[:0]
	for i, t := range s.timers {
		if t.strict && t.at <= s.now { // the watchdog's timer does not wait for anybody
			return append(ms, move{fire, i})
		}
	}
	for i, a := range s.agents {
		if a.stalled == 0 && !a.waits() {
			ms = append(ms, move{step, i})
		}
	}
	late, next := false, time.Duration(-1)
	for i, t := range s.timers {
		switch {
		case t.at <= s.now:
			ms = append(ms, move{fire, i})
		case next < 0 || t.at < next:
			next = t.at
		}
	}
	for i, m := range s.messages {
		ms = append(ms, move{deliver, i})
		late = late || m.until <= s.now
	}
	slices.SortStableFunc(ms, func(a, b move) int { return s.rank(a) - s.rank(b) })
	if next >= 0 && !late {
		p := move{pass, 0}
		if len(ms) == 0 || s.rank(ms[0]) >= rankStuck {
			ms = slices.Insert(ms, 0, p)
		} else {
			ms = append(ms, p)
		}
	}
	for i, m := range s.messages {
		ms = append(ms, move{lose, i})
		if !m.stuck {
			ms = append(ms, move{stick, i})
		}
	}
	for i, a := range s.agents {
		if a.stalled == 0 && !a.waits() {
			ms = append(ms, move{stall, i})
		}
	}
	for i, p := range s.leavers() {
		if p.mayLeave() {
			ms = append(ms, move{quit, i})
		}
	}
	return ms
}

const rankStuck = 1 << 20

// rank is where a move stands in the default schedule: small ones first.
func (s *sim) rank(m move) int {
	switch m.kind {
	case step:
		a := s.agents[m.i]
		switch {
		case a.behind > 0:
			return 5000 + a.behind
		case a == s.last:
			return 0
		case s.order == 1:
			return 2000 - m.i
		}
		return 1000 + m.i
	case fire:
		return 500
	case deliver:
		switch {
		case s.messages[m.i].stuck:
			return rankStuck
		case s.order == 1:
			return 900 - m.i
		}
		return 3000 + m.i
	default:
		return rankStuck
	}
}

// do makes a move. from is what could have been done instead, and the default comes first.
func (s *sim) do(m move, from []move) {
	if first := from[0]; first != m && first.kind == step && (m.kind == step || m.kind == deliver || m.kind == fire || m.kind == pass) {
		s.serial++
		s.agents[first.i].behind = s.serial
	}
	switch m.kind {
	case step:
		a := s.agents[m.i]
		a.behind = 0
		s.last = a
		if _, goesOn := a.next(); !goesOn {
			s.agents = slices.DeleteFunc(s.agents, func(b *agent) bool { return a == b })
		}
	case fire:
		t := s.timers[m.i]
		t.off = true
		s.say("timer: %s", t.what)
		t.fires()
	case deliver:
		x := s.messages[m.i]
		s.messages = slices.Delete(s.messages, m.i, m.i+1)
		s.say("arrives: %s", x.what)
		x.arrives()
	case pass:
		if m != from[0] {
			s.faults++
		}
		s.pass()
	case lose:
		s.faults++
		s.say("lost: %s", s.messages[m.i].what)
		s.messages = slices.Delete(s.messages, m.i, m.i+1)
	case stick:
		s.faults++
		s.say("stuck: %s", s.messages[m.i].what)
		s.messages[m.i].stuck = true
	case stall:
		s.faults++
		s.say("stalls: %s", s.agents[m.i].what)
		s.agents[m.i].stalled = 3
	case quit:
		x := s.leavers()[m.i]
		x.gone = errLeft
		s.say("%s is left", x.name)
	}
	s.timers = slices.DeleteFunc(s.timers, func(t *timer) bool { return t.off })
}

var errLeft = errors.New("left")

func (s *sim) pass() {
	s.idle()
	next := time.Duration(-1)
	for _, t := range s.timers {
		if next < 0 || t.at < next {
			next = t.at
		}
	}
	for _, m := range s.messages {
		next = min(next, max(m.until, s.now))
	}
	s.now = next
	for _, a := range s.agents {
		a.stalled = max(0, a.stalled-1)
	}
}

// run plays one schedule: at each move, choose says which of n to make. It returns how many moves there were.
func (s *sim) run(choose func(n int) int) (moves int) {
	var buf []move
	for s.err == nil {
		buf = s.moves(buf)
		if len(buf) == 0 && s.wake() {
			continue
		}
		if len(buf) == 0 {
			s.over()
			return moves
		}
		if moves++; moves > 3000 {
			s.fail("it does not end")
			return moves
		}
		c := choose(len(buf))
		if c > 0 {
			s.say("-- move %d of %d", c, len(buf))
		}
		s.do(buf[c], buf)
		s.check()
	}
	return moves
}

// wake ends all stalls. It says whether there were any.
func (s *sim) wake() (some bool) {
	for _, a := range s.agents {
		some = some || a.stalled > 0
		a.stalled = 0
	}
	return some
}

// idle looks, before time goes on, whether somebody waits at the backend for nobody.
func (s *sim) idle() {
	for _, a := range s.agents {
		if !a.waits() {
			return
		}
	}
	for _, p := range s.procs {
		if n, _ := p.place.Table.Waiting(); n == 0 && len(p.waits) > 0 {
			s.fail("%s waits for nobody", p.name)
		}
	}
}
