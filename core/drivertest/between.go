package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
)

// betweenCases have others come and go between the requests of a call.
var betweenCases = []testCase{
	// Right before each request of a call another process comes or goes, or the caller leaves; before the call, where there are no
	// connections to break. No more have the name than may, what a call says is so, and nothing is left.
	{name: "WhoComesBetweenTheRequestsOfACallIsRespected", run: func(e *env) {
		w := e.wire()
		for _, r := range e.rivals() {
			for what, p := range (&meeting{}).plots() {
				for step, more := 1, p.meanwhile != nil && (!r.mixed || what == kindsMeet); more && !e.Failed(); step++ {
					more = w.meet(r, what, "request", step, nil)
				}
			}
		}
		e.nothingLeft()
	}},
}

// rivals are two claims, beside one that has the name already, if there is such.
type rivals struct {
	mine, theirs, beside driver.Claim
	together, mixed      bool // both can have the name; they are of two kinds
}

func (e *env) rivals() (all []rivals) {
	kinds := e.kinds(always(""))
	if e.can.Limit {
		kinds["limited to one"] = e.permit("", 1)
	}
	for kind, mine := range kinds {
		for other, theirs := range kinds {
			all = append(all, rivals{mine: mine, theirs: theirs, together: kind == other && !mine.Exclusive(), mixed: kind != other || mine.Limit == 1})
		}
	}
	if permit, ok := kinds["limited"]; ok {
		all = append(all, rivals{mine: permit, theirs: permit, beside: permit})
	}
	if e.can.Dedup {
		c := e.lasting("")
		c.Dedup, c.Scope = time.Hour, "scope"
		all = append(all, rivals{mine: c, theirs: c})
	}
	return all
}

// meeting is a call for mine over connections that a case breaks, and what is done meanwhile.
type meeting struct {
	*wire
	rivals
	step  int                // the request before which it is done
	cut   bool               // the connection is cut, and nothing else is done
	leave context.CancelFunc // of the caller's context
	begin sync.Once
	begun chan struct{} // closed as it begins

	got    driver.Grant // theirs
	behind driver.Claim // who waits behind theirs
	next   *waiter      // who waits behind mine
	had    bool         // mine has had the name before the call
	asks   bool         // the call asks for the name
	ended  bool         // the call releases it
	gone   bool         // and it was taken from mine
	stays  bool         // theirs has the name, and has not released it
	done   bool         // theirs has left a marker
	left   bool         // the caller has left
	doubt  bool         // the call may not know what came of it
	cannot bool         // the backend cannot do this
}

// call is one for mine.
type call func(ctx context.Context, d driver.Driver) (driver.Grant, error)

// plot is what is done before a call, and right before a request of it; nil if that or its reply is cut instead, and the call made again.
type plot struct {
	before, meanwhile []func()
	call              call
}

func (m *meeting) plots() map[string]plot {
	type acts = []func()
	return map[string]plot{
		kindsMeet:                   {nil, acts{m.comes}, m.acquire},
		"an acquire, a whole grant": {nil, acts{m.comes, m.goes}, m.acquire},
		"an acquire, a whole grant before one who waits":  {nil, acts{m.comes, m.follows, m.goes}, m.acquire},
		"an acquire, the owner's release":                 {acts{m.comes}, acts{m.goes}, m.acquire},
		"an acquire, its caller leaves":                   {nil, acts{m.leaves}, m.acquire},
		"an acquire, another as its caller leaves":        {nil, acts{m.comes, m.leaves}, m.acquire},
		"an acquire, another uses a hand-off":             {acts{m.awaits}, acts{m.comes}, m.acquire},
		"a hand-off, another uses it":                     {acts{m.awaits, m.uses}, acts{m.comes}, m.acquire},
		"an acquire out of the queue, one who waits":      {acts{m.doubts, m.comes, m.queues, m.goes}, acts{m.ends, m.comes, m.follows, m.goes}, m.acquire},
		"a wait, the owner's release":                     {acts{m.comes}, acts{m.goes}, m.wait},
		"a look, its end":                                 {acts{m.comes}, acts{m.leaves, m.ends}, m.look},
		"an acquire, after its clean-up":                  {acts{m.ends}, acts{}, m.acquire},
		"a renewal, a release":                            {acts{m.has}, acts{m.ends}, m.renew},
		"a renewal, a release and a grant":                {acts{m.has}, acts{m.ends, m.comes}, m.renew},
		"a renewal, another":                              {acts{m.has}, acts{m.comes}, m.renew},
		"a renewal, itself":                               {acts{m.has}, acts{m.renewsToo}, m.renew},
		"a longer renewal, its caller leaves":             {acts{m.has, m.longs, m.doubts}, acts{m.leaves}, m.renew},
		"a longer renewal, a release and a grant":         {acts{m.has, m.longs, m.doubts}, acts{m.ends, m.comes}, m.renew},
		"a release, a release and a grant":                {acts{m.has, m.doubts}, acts{m.ends, m.comes}, m.release},
		"a release, another":                              {acts{m.has}, acts{m.comes}, m.release},
		"a release, its caller leaves":                    {acts{m.has}, acts{m.leaves}, m.release},
		"a release for a hand-off, a release and a grant": {acts{m.has, m.doubts, m.hands}, acts{m.ends, m.comes}, m.release},
		"a release for a hand-off, its caller leaves":     {acts{m.has, m.hands}, acts{m.leaves}, m.release},
		"a release out of the queue, the owner's release": {acts{m.comes, m.queues}, acts{m.goes}, m.release},
		"a cut acquire":                                   {nil, nil, m.acquire},
		"a cut acquire that is given up":                  {nil, nil, m.givesUp},
		"a cut wait for a free name":                      {nil, nil, m.wait},
		"a cut wait":                                      {acts{m.comes}, nil, m.wait},
		"a cut renewal":                                   {acts{m.has}, nil, m.renew},
		"a cut release":                                   {acts{m.has, m.finishes}, nil, m.release},
		"a cut release that serves":                       {acts{m.has, m.precedes}, nil, m.release},
		"a cut release out of the queue":                  {acts{m.comes, m.queues}, nil, m.release},
	}
}

// kindsMeet is the meeting of claims of two kinds.
const kindsMeet = "an acquire, another"

// mostRequests are looked at of a call. What sends more has them in the background.
const mostRequests = 4

// meet plays a meeting, and says whether there may be another request.
func (w *wire) meet(r rivals, what, part string, step int, cut func(Wire, int)) bool {
	w.e.Helper()
	w.what = fmt.Sprintf("%s, limits %d, %d and %d, dedup %s, %s %d", what, r.mine.Limit, r.theirs.Limit, r.beside.Limit, r.mine.Dedup, part, step)
	w.name = strings.NewReplacer(" ", "-", ",", "").Replace(w.what)
	for _, c := range []*driver.Claim{&r.mine, &r.theirs, &r.beside} {
		c.Name, c.Token = w.name, token()
	}
	m := &meeting{wire: w, rivals: r, step: step, cut: cut != nil, begun: make(chan struct{})}
	p := m.plots()[what]
	if r.beside.Limit > 0 {
		w.e.grant(w.other, r.beside)
	}
	for _, act := range p.before {
		act()
	}
	if m.cannot {
		m.settle(nil)
		return false
	}
	var ctx context.Context
	ctx, m.leave = context.WithTimeout(w.e.ctx, driver.Patience(m.mine.TTL))
	defer m.leave()
	for _, wire := range w.through {
		if m.cut {
			cut(wire, step)
			continue
		}
		wire.Before(step, func() {
			m.begin.Do(func() {
				close(m.begun)
				for _, act := range p.meanwhile {
					act()
				}
			})
		})
	}
	g, err := m.until(p.call)(ctx, w.d)
	more := m.over()
	m.judge(g, err)
	if m.cut {
		m.survives()
	}
	m.settle(err)
	return more && step < mostRequests
}

// over has nothing begin any more. When what has begun is over, it says whether there was such a request.
func (m *meeting) over() bool {
	heal(m.through)
	m.begin.Do(func() {})
	select {
	case <-m.begun:
		return true
	default:
		return false
	}
}

// until has a call that is cut made until it is answered. Nobody but a node of a quorum that is late, with what it was sent before,
// refuses who alone asks for the name.
func (m *meeting) until(call call) call {
	if !m.cut {
		return call
	}
	return func(_ context.Context, d driver.Driver) (driver.Grant, error) {
		until := time.Now().Add(m.e.Slow)
		return m.e.again(m.mine, func(ctx context.Context, _ driver.Claim) (driver.Grant, error) {
			ctx, cancel := context.WithTimeout(ctx, driver.Patience(m.mine.TTL))
			defer cancel()
			g, err := call(ctx, d)
			if driver.Explain(err).Held != nil && time.Now().Before(until) {
				err = driver.UnknownOutcome(context.DeadlineExceeded)
			}
			return g, err
		})
	}
}

// survives fails the case unless a call that was cut has come to what it should.
func (m *meeting) survives() {
	m.e.Helper()
	if !m.ended {
		m.e.refused(m.other, m.e.claim(m.name), m.what)
		return
	}
	m.goes()
	if m.mine.Dedup > 0 && !m.marked() {
		m.e.Fatalf("%s: it has left no marker", m.what)
	}
	if m.next != nil {
		m.next.granted(2*driver.Recheck(m.mine.TTL)+m.e.pace(m.mine), m.what)
		m.e.ends(m.other, m.next.c, m.what) // nobody has renewed it meanwhile
	}
	m.e.free(m.name)
}

// Calls.

func (m *meeting) acquire(ctx context.Context, d driver.Driver) (driver.Grant, error) {
	m.asks = true
	return d.Acquire(ctx, m.mine)
}

func (m *meeting) renew(ctx context.Context, d driver.Driver) (g driver.Grant, err error) {
	return g, d.Renew(ctx, []driver.Claim{m.mine})[0]
}

func (m *meeting) release(ctx context.Context, d driver.Driver) (g driver.Grant, err error) {
	m.ended = true
	return g, d.Release(ctx, m.mine)
}

// givesUp asks once, and then releases what that may have got.
func (m *meeting) givesUp(ctx context.Context, d driver.Driver) (g driver.Grant, err error) {
	if !m.ended {
		_, _ = d.Acquire(ctx, m.mine)
	}
	return m.release(ctx, d)
}

// look is a Wait that ends with the first answer.
func (m *meeting) look(ctx context.Context, d driver.Driver) (driver.Grant, error) {
	m.asks = true
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := m.mine
	c.Heard = func(*driver.Held) { cancel() }
	return d.Wait(ctx, c)
}

func (m *meeting) wait(_ context.Context, d driver.Driver) (driver.Grant, error) {
	m.asks = true
	next := m.e.begins(d, m.mine) //nolint:contextcheck // it ends by a grant
	select {
	case <-m.begun:
	case <-next.over:
	case <-next.first:
		select {
		case <-m.begun:
		case <-next.over:
		case <-time.After(m.e.Slow):
		}
	}
	if !m.over() { // it sends no more
		m.goes()
	}
	bound := m.e.hearing(m.mine)
	if m.cut {
		bound = 2*driver.Recheck(m.mine.TTL) + m.e.pace(m.mine)
	}
	late := time.AfterFunc(bound+m.e.slack()+time.Second, next.cancel)
	defer late.Stop()
	m.e.within(bound, m.what, func() { <-next.over })
	return next.g, next.err
}

// What may be done before a call, or meanwhile.

// renewsToo has it that the renewal is sent twice.
func (m *meeting) renewsToo() { _, _ = m.renew(m.e.ctx, m.other) }

func (m *meeting) has() { m.e.grant(m.d, m.mine); m.had = true }

// longs has the renewal ask for a longer TTL.
func (m *meeting) longs() { m.mine.TTL += time.Minute }

// ends has it that mine has released the name, or left the queue.
func (m *meeting) ends() { m.gone = m.frees(bare(m.mine)) }

func (m *meeting) leaves() { m.left = true; m.leave() }

// finishes has the release leave a marker.
func (m *meeting) finishes() {
	if m.e.can.Dedup {
		m.mine.Dedup, m.mine.Scope = time.Hour, "scope"
	}
}

// doubts says that the call need not find out what has come of it.
func (m *meeting) doubts() { m.doubt = true }

func (m *meeting) queues() {
	if m.cannot = m.together; !m.cannot {
		m.e.queue(m.d, m.mine, m.what)
	}
}

// comes has theirs take the name if it can.
func (m *meeting) comes() {
	g, err := m.other.Acquire(m.e.ctx, m.theirs)
	if m.got, m.stays = g, err == nil; !driver.Explain(err).Answered() {
		m.e.Errorf("%s: the other one: %v", m.what, err)
	}
}

// goes has theirs release it, with a marker if there can be one.
func (m *meeting) goes() {
	m.frees(m.theirs)
	m.done, m.stays = m.stays && m.theirs.Dedup > 0, false
}

// frees releases c by another process than its own, and says whether it has owned the name.
func (m *meeting) frees(c driver.Claim) bool {
	err := m.e.answered(c, func(ctx context.Context) error { return m.other.Release(ctx, c) })
	if err != nil && !errors.Is(err, driver.ErrNotOwner) {
		m.e.Errorf("%s: a release: %v", m.what, err)
	}
	return err == nil
}

// precedes has one more wait behind mine.
func (m *meeting) precedes() { m.next = m.e.waits(m.other, m.e.long(m.name)) }

// follows has one more wait behind theirs.
func (m *meeting) follows() {
	if !m.stays || !m.e.can.Queue {
		return
	}
	m.behind = m.e.lasting(m.name)
	ctx, cancel := context.WithCancel(m.e.ctx)
	defer cancel()
	c := m.behind
	c.Heard = func(*driver.Held) { cancel() }
	if _, err := m.other.Wait(ctx, c); err == nil {
		m.e.Errorf("%s: one who waits has the name, too", m.what)
	}
}

// awaits has the name left for a hand-off, which theirs uses.
func (m *meeting) awaits() {
	if m.cannot = !m.detaches() || m.mine.Dedup > 0; !m.cannot {
		giver := m.e.lasting(m.name)
		m.e.grant(m.other, giver)
		m.e.release(m.other, handedOff(giver, time.Minute))
		m.theirs.Handoff = someHandoff
	}
}

func (m *meeting) uses() { m.mine.Handoff = someHandoff }

// hands has the release leave the name for a hand-off, beside the marker. theirs asks for that.
func (m *meeting) hands() {
	if m.cannot = !m.detaches(); !m.cannot {
		m.mine, m.theirs.Handoff, m.theirs.Dedup = handedOff(m.mine, time.Minute), someHandoff, 0
	}
}

func (m *meeting) detaches() bool {
	return m.e.can.Detach && m.mine.Exclusive() && m.theirs.Exclusive()
}

// judge fails the case unless what the call said is so.
func (m *meeting) judge(g driver.Grant, err error) { //nolint:cyclop // one case for each thing that may not be
	m.e.Helper()
	mine, theirs, said := m.e.owns(m.d, m.mine), m.e.owns(m.other, m.theirs), driver.Explain(err)
	asked := err == nil && m.asks && (mine || !m.gone) // else it may have been granted the name before that was taken from it
	switch {
	case m.cut && mine == m.ended:
		m.e.Errorf("%s: told %v, and owns the name: %t", m.what, err, mine)
	case mine && theirs && !m.together:
		m.e.Errorf("%s: two owners", m.what)
	case m.stays && !theirs:
		m.e.Errorf("%s: it has ended another's grant", m.what)
	case m.had && m.gone && mine && !m.doubt:
		m.e.Errorf("%s: it owns the name again", m.what)
	case err == nil && m.had && m.gone && m.step == 1, asked && !mine, said.Answered() && err != nil && mine:
		m.e.Errorf("%s: told %v, and owns the name: %t", m.what, err, mine)
	case errors.Is(err, driver.ErrNotSent) && !m.gone && mine != m.had:
		m.e.Errorf("%s: nothing was sent, and owns the name: %t", m.what, mine)
	case !said.Answered() && !m.left && !m.doubt && !errors.Is(err, context.DeadlineExceeded): // on a busy machine
		m.e.Errorf("%s: %v", m.what, err)
	case asked && !m.together && g.Fence > 0 && g.Fence <= m.got.Fence:
		m.e.Errorf("%s: fence %d after %d", m.what, g.Fence, m.got.Fence)
	case asked && !m.together && m.behind.Name != "" && !m.e.Overtaken:
		m.e.Errorf("%s: it has overtaken one who waits", m.what)
	case asked && m.done, m.had && m.stays && m.theirs.Dedup > 0 && m.marked():
		m.e.Errorf("%s: granted beside a marker, or has left one after another's grant", m.what)
	}
}

// marked says whether there is a marker.
func (m *meeting) marked() bool {
	probe := m.theirs
	probe.Token, probe.Dedup, probe.Scope = token(), m.mine.Dedup, m.mine.Scope
	_, err := m.e.again(probe, m.other.Acquire)
	_, found := errors.AsType[*driver.Duplicate](err)
	return found
}

// settle ends all. Behind a call whose outcome is not known, that is done until it cannot come any more, as core does.
func (m *meeting) settle(err error) {
	m.e.Helper()
	if i, ok := m.e.shows.(inspect.MarkerInspector); ok && m.mine.Dedup > 0 {
		defer func() { _ = i.Unmark(m.e.ctx, m.name, m.mine.Scope) }() // the next meeting has another name
	}
	again, handoff := m.mine, m.theirs.Handoff
	if again.Keep == 0 {
		again.Handoff = ""
	}
	probe := m.e.claim(m.name)
	m.e.eventually("the name is free", func() bool {
		m.e.ends(m.d, again, m.what)
		if m.theirs.Handoff = handoff; handoff != "" && !m.stays { // nobody else gets what was left for it
			m.comes()
		}
		m.theirs.Handoff = ""
		for _, c := range []driver.Claim{m.theirs, m.behind, m.beside} {
			if c.TTL > 0 {
				m.e.ends(m.other, c, m.what)
			}
		}
		if !driver.Explain(err).Open() {
			m.e.grant(m.other, probe)
			return true
		}
		_, err := m.e.again(probe, m.other.Acquire)
		return err == nil
	})
	m.e.release(m.other, probe)
}
