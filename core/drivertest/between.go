package drivertest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// betweenCases have others come and go between the requests of a call.
var betweenCases = []testCase{
	// Right before each request of a call another process comes or goes. No two have the name, what a call says is so, and nothing
	// is left.
	{name: "WhoComesBetweenTheRequestsOfACallIsRespected", needs: []need{wires}, run: func(e *env) {
		d, through := e.connect()
		w := &wire{e: e, d: d, other: e.Driver(), through: through}
		w.warm()
		for _, r := range e.rivals() {
			for what, meet := range meetings {
				for step, more := 1, true; more && !e.Failed(); step++ {
					more = w.meet(r, what, step, meet)
				}
			}
		}
	}},
}

// rivals are claims of which one alone can have a name, beside one that has it already, if there is such.
type rivals struct{ mine, theirs, beside driver.Claim }

func (e *env) rivals() []rivals {
	none, owner, reader, permit := driver.Claim{}, e.lasting(""), e.lasting(""), e.lasting("")
	reader.Limit, permit.Limit = driver.Readers, 2
	all := []rivals{{owner, owner, none}}
	if e.can.Shared {
		all = append(all, rivals{owner, reader, none}, rivals{reader, owner, none})
	}
	if e.can.Limit {
		all = append(all, rivals{permit, permit, permit})
	}
	return all
}

// meeting is a call for mine over connections that a case breaks, and what another process does meanwhile.
type meeting struct {
	*wire
	rivals
	step  int // the request before which it is done
	begin sync.Once
	came  bool         // it has begun
	g     driver.Grant // mine
	got   driver.Grant // theirs
	stays bool         // theirs has the name, and has not released it
}

// mostRequests are looked at of a call. What sends more has them in the background.
const mostRequests = 4

// meet plays a meeting, and says whether there may be another request.
func (w *wire) meet(r rivals, what string, step int, play func(m *meeting) error) bool {
	w.e.Helper()
	w.what = fmt.Sprintf("%s, limits %d and %d, before request %d", what, r.mine.Limit, r.theirs.Limit, step)
	w.name = strings.NewReplacer(" ", "-", ",", "").Replace(w.what)
	for _, c := range []*driver.Claim{&r.mine, &r.theirs, &r.beside} {
		c.Name, c.Token = w.name, token()
	}
	m := &meeting{wire: w, rivals: r, step: step}
	if r.beside.Limit > 0 {
		w.e.grant(w.other, r.beside)
	}
	m.settles(play(m))
	w.e.free(w.name)
	return m.over() && step < mostRequests
}

// meetings return what the call for mine said.
var meetings = map[string]func(m *meeting) error{
	"an acquire": func(m *meeting) error {
		return m.between(m.theirsComes, m.acquire)
	},
	"an acquire, a whole grant": func(m *meeting) error {
		err := m.between(func() { m.theirsComes(); m.theirsGoes() }, m.acquire)
		if err == nil && m.g.Fence <= m.got.Fence && m.e.can.Fence && m.mine.Limit <= 0 {
			m.e.Errorf("%s: fence %d after %d", m.what, m.g.Fence, m.got.Fence)
		}
		return err
	},
	"an acquire, the owner's release": func(m *meeting) error {
		m.theirsComes()
		return m.between(m.theirsGoes, m.acquire)
	},
	"a wait, the owner's release": func(m *meeting) error {
		m.theirsComes()
		m.before(m.theirsGoes)
		next := m.e.begins(m.d, m.mine)
		select {
		case <-next.first:
			time.Sleep(m.e.Slow)
		case <-next.over:
		}
		if !m.over() { // it sends no more
			m.theirsGoes()
		}
		m.g = next.granted(m.e.hearing(m.mine), m.what)
		return nil
	},
	"a renewal, a release and a grant": func(m *meeting) error {
		m.e.grant(m.d, m.mine)
		return m.between(m.mineGoes, func(ctx context.Context) error { return m.d.Renew(ctx, []driver.Claim{m.mine})[0] })
	},
	"a release, a release and a grant": func(m *meeting) error {
		m.e.grant(m.d, m.mine)
		return m.between(m.mineGoes, m.release)
	},
	"a release out of the queue, the owner's release": func(m *meeting) error {
		m.theirsComes()
		m.e.queue(m.d, m.mine, m.what)
		if err := m.between(m.theirsGoes, m.release); err != nil {
			return err
		}
		return driver.ErrNotOwner // what it was granted directly it has given back
	},
}

// before has do run right before a request, on another goroutine.
func (m *meeting) before(do func()) {
	for _, wire := range m.through {
		wire.Before(m.step, func() {
			m.begin.Do(func() { m.came = true; do() })
		})
	}
}

// between makes a call, and has do run right before one of its requests.
func (m *meeting) between(do func(), call func(ctx context.Context) error) error {
	m.before(do)
	defer m.over()
	ctx, cancel := context.WithTimeout(m.e.ctx, driver.Patience(m.mine.TTL))
	defer cancel()
	return call(ctx)
}

// over has nothing begin any more. When what has begun is over, it says whether there was such a request.
func (m *meeting) over() bool {
	heal(m.through)
	m.begin.Do(func() {})
	return m.came
}

func (m *meeting) acquire(ctx context.Context) (err error) {
	m.g, err = m.d.Acquire(ctx, m.mine)
	return err
}

func (m *meeting) release(ctx context.Context) error { return m.d.Release(ctx, m.mine) }

// theirsComes has theirs take the name if it can.
func (m *meeting) theirsComes() {
	g, err := m.other.Acquire(m.e.ctx, m.theirs)
	if m.got, m.stays = g, err == nil; err != nil && driver.Explain(err).Held == nil {
		m.e.Errorf("%s: the other one: %v", m.what, err)
	}
}

func (m *meeting) theirsGoes() { m.ends(m.theirs); m.stays = false }

// mineGoes has mine release the name by another process, and theirs take it.
func (m *meeting) mineGoes() { m.ends(m.mine); m.theirsComes() }

func (m *meeting) ends(c driver.Claim) {
	if err := m.other.Release(m.e.ctx, c); err != nil && !errors.Is(err, driver.ErrNotOwner) {
		m.e.Errorf("%s: a release: %v", m.what, err)
	}
}

// settles fails the case unless what the call for mine said is so, and ends all.
func (m *meeting) settles(err error) {
	m.e.Helper()
	mine, theirs, said := m.e.owns(m.d, m.mine), m.e.owns(m.other, m.theirs), driver.Explain(err)
	switch {
	case mine && theirs:
		m.e.Errorf("%s: two owners", m.what)
	case m.stays && !theirs:
		m.e.Errorf("%s: it has ended another's grant", m.what)
	case err == nil && m.stays && m.step == 1:
		m.e.Errorf("%s: it is told that it has the name", m.what)
	case err == nil && m.g.TTL > 0 && !mine, mine && said.Answered() && err != nil:
		m.e.Errorf("%s: told %v, and owns the name: %t", m.what, err, mine)
	}
	m.e.ends(m.d, m.mine, m.what)
	m.e.ends(m.other, m.theirs, m.what)
	if m.beside.Limit > 0 {
		m.e.release(m.other, m.beside)
	}
}
