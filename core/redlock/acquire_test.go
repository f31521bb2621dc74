package redlock_test

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// want is what a call comes to.
type want int

const (
	done want = iota
	held
	notOwner
	unknown
	notSent
)

func TestWhatTheNodesSayDecides(t *testing.T) {
	t.Parallel()
	const down, lost, mute, reset = lab.Refused, lab.RequestLost, lab.ReplyLost, lab.ReplyReset
	type row struct {
		fates        []lab.Fate
		flush, squat []int // nodes that have forgotten it, or that somebody else has
		want         want
	}
	for op, rows := range map[lab.Op]map[string]row{
		lab.OpAcquire: {
			"a quorum of three":                    {fates: []lab.Fate{0, down, 0}},
			"no quorum of three":                   {fates: []lab.Fate{0, down, down}, want: notSent}, // the one is given back
			"one may have granted":                 {fates: []lab.Fate{down, lost, down}, want: unknown},
			"two are enough to hold three":         {fates: []lab.Fate{0, 0, 0}, squat: []int{0, 2}, want: held},
			"one of three is in nobody's way":      {fates: []lab.Fate{0, 0, 0}, squat: []int{1}},
			"one says held, others nothing":        {fates: []lab.Fate{0, lost, mute}, squat: []int{0}, want: held},
			"half of four is no quorum":            {fates: []lab.Fate{0, 0, down, down}, want: notSent},
			"half of four is no quorum for either": {fates: []lab.Fate{0, 0, 0, 0}, squat: []int{0, 1}, want: held},
			"two of five, a squatter, two down":    {fates: []lab.Fate{0, 0, 0, down, reset}, squat: []int{0}, want: held},
			"two of five, three resets":            {fates: []lab.Fate{0, 0, reset, reset, reset}, want: unknown},
		},
		lab.OpRenew: { // where it was lost it is healed, if a quorum has it
			"a quorum; one is down":               {fates: []lab.Fate{0, down, 0}},
			"no quorum answers":                   {fates: []lab.Fate{0, lost, mute}, want: unknown},
			"one has lost it, one may have it":    {fates: []lab.Fate{0, 0, mute}, flush: []int{0}, want: unknown},
			"two of three have lost it":           {fates: []lab.Fate{0, 0, 0}, flush: []int{0, 1}, want: notOwner},
			"two have lost it, one is silent":     {fates: []lab.Fate{0, 0, lost}, flush: []int{0, 1}, want: notOwner},
			"half of four have lost it":           {fates: []lab.Fate{0, 0, 0, 0}, flush: []int{0, 1}, want: notOwner},
			"two of five have lost it":            {fates: []lab.Fate{0, 0, 0, 0, 0}, flush: []int{0, 1}},
			"two of five are somebody else's":     {fates: []lab.Fate{0, 0, 0, 0, 0}, flush: []int{0, 1}, squat: []int{0, 1}},
			"two lost it, three may not, of five": {fates: []lab.Fate{0, 0, down, down, down}, flush: []int{0, 1}, want: unknown},
		},
		lab.OpRelease: {
			"a quorum":                       {fates: []lab.Fate{0, lost, 0}},
			"one has lost it":                {fates: []lab.Fate{0, 0, 0}, flush: []int{2}},
			"two of three have lost it":      {fates: []lab.Fate{0, 0, 0}, flush: []int{0, 2}, want: notOwner},
			"half of four have lost it":      {fates: []lab.Fate{0, 0, 0, 0}, flush: []int{0, 1}, want: notOwner},
			"two are silent":                 {fates: []lab.Fate{0, lost, lost}, want: unknown},
			"one has lost it, one is silent": {fates: []lab.Fate{0, 0, lost}, flush: []int{0}, want: unknown},
			"nobody was asked, and will be":  {fates: []lab.Fate{down, down, down}, want: unknown},
		},
	} {
		for what, c := range rows {
			t.Run(fmt.Sprint(op, ": ", what), func(t *testing.T) {
				t.Parallel()
				overNodes(t, len(c.fates), func(t *testing.T, m *nodeSet) {
					p := m.process()
					if op != lab.OpAcquire {
						p = m.holder("token")
					}
					for _, i := range c.flush {
						p.flush(i)
					}
					m.squat(c.squat...)
					p.next(op, c.fates...)
					left := len(c.squat)
					var err error
					switch op {
					case lab.OpAcquire:
						if err = acquires(t, p, p.claim("token")); err == nil {
							synctest.Wait()
							ok(t, p.store.Release(t.Context(), p.claim("token")))
						}
					case lab.OpRelease:
						err = p.store.Release(t.Context(), p.claim("token"))
					default:
						if left = len(c.fates); c.want != done {
							left -= len(c.flush)
						}
						err = p.renew()
						for _, i := range c.flush {
							if synctest.Wait(); c.want == done && c.squat == nil { // with the same token
								ok(t, m.stores[i].Renew(t.Context(), []driver.Claim{p.links[i].LastClaim()})[0])
							}
						}
						m.wantTaken(left)
					}
					switch c.want {
					case done:
						ok(t, err)
					case held:
						isHeld(t, err)
					case unknown:
						isUnknown(t, err)
					case notOwner:
						is(t, err, driver.ErrNotOwner)
					case notSent:
						is(t, err, driver.ErrNotSent)
					}
					time.Sleep(ttl / 2) // less than it would take by itself
					m.wantTaken(left)   // the rest was cleaned up all the same
				})
			})
		}
	}
}

func TestOnlyWhatWasNeverAskedForIsCertainNotToBeSent(t *testing.T) {
	t.Parallel()
	overNodes(t, 3, func(t *testing.T, m *nodeSet) {
		p := m.process()
		p.next(lab.OpRelease, lab.Refused, lab.Refused, lab.Refused)
		is(t, p.store.Release(t.Context(), p.claim("token")), driver.ErrNotSent)
	})
}

func TestAQuorumDoesNotWaitForSlowNodes(t *testing.T) {
	t.Parallel()
	overNodes(t, 5, func(t *testing.T, m *nodeSet) {
		p, began := m.process(), time.Now()
		two := func(op lab.Op) { p.next(op, lab.RequestLost, lab.ReplyLost) }
		two(lab.OpAcquire)
		ok(t, acquires(t, p, p.claim("token")))
		two(lab.OpRenew)
		ok(t, p.renew())
		two(lab.OpRelease)
		ok(t, p.store.Release(t.Context(), p.claim("token")))
		m.squat(2, 3, 4)
		two(lab.OpAcquire)
		isHeld(t, acquires(t, p, p.claim("another")))
		if took := time.Since(began); took != 0 {
			t.Errorf("took %s", took)
		}
	})
}

// Where the vote is split, one that is silent is waited for, but not for long.
func TestANodeThatIsSilentCostsASplitVoteLittle(t *testing.T) {
	t.Parallel()
	overNodes(t, 5, func(t *testing.T, m *nodeSet) {
		p := m.process()
		m.squat(0, 1)
		p.next(lab.OpAcquire, 0, 0, 0, 0, lab.RequestLost)
		began := time.Now()
		isHeld(t, acquires(t, p, p.claim("token")))
		if took := time.Since(began); took != 100*time.Millisecond {
			t.Errorf("took %s", took)
		}
	})
}

func TestHeldSaysWhenAQuorumComesFreeAtTheLatest(t *testing.T) {
	t.Parallel()
	overNodes(t, 5, func(t *testing.T, m *nodeSet) {
		for i, seconds := range []int{5, 3, 1, 9, 7} {
			_, err := m.stores[i].Acquire(t.Context(), driver.Claim{Name: "name", Token: "other", Label: "label", TTL: time.Duration(seconds) * time.Second})
			ok(t, err)
		}
		p := m.process()
		for _, l := range p.links {
			l.Delay(0, time.Millisecond) // all answers come at once
		}
		_, err := p.store.Acquire(t.Context(), p.claim("token"))
		h, ok := errors.AsType[*driver.Held](err)
		if !ok || h.Label != "label" || h.Exact || h.Remaining < 5*time.Second-time.Millisecond || h.Remaining > 9*time.Second {
			t.Errorf("%+v", err)
		}
	})
}

// Core asks again with the same token where it has not heard the answer. What this grants must not be given back since
// the first promise has ended meanwhile.
func TestWhatAnAcquireIsGrantedAgainIsKeptBeyondTheFirstPromise(t *testing.T) {
	t.Parallel()
	overNodes(t, 5, func(t *testing.T, m *nodeSet) {
		p := m.fenced()
		ok(t, acquires(t, p, p.claim("token"))) // core has not heard this
		time.Sleep(ttl - 10*time.Millisecond)
		for i, l := range p.links {
			l.Delay(time.Duration(20+i)*time.Millisecond, 0)
		}
		ok(t, acquires(t, p, p.claim("token")))
		time.Sleep(100 * time.Millisecond)
		m.wantTaken(5)
		ok(t, p.store.Release(t.Context(), p.claim("token")))
	})
}

// A node that refuses to be dialled does so at once, which says nothing about how long the others take.
func TestNodesThatAreDownHurryNobody(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5} {
		overNodes(t, n, func(t *testing.T, m *nodeSet) {
			p := m.process()
			for i, l := range p.links {
				switch {
				case i == 0:
					l.Delay(time.Millisecond, 0)
				case i <= (n-1)/2:
					l.All(lab.Refused)
				default:
					l.Delay(60*time.Millisecond, 60*time.Millisecond)
				}
			}
			ok(t, acquires(t, p, p.claim("token")))
			ok(t, p.store.Release(t.Context(), p.claim("token")))
			p.links[n-1].All(lab.RequestLost) // one too many, which may only be far away
			began := time.Now()
			isUnknown(t, acquires(t, p, p.claim("token")))
			if took := time.Since(began); took > time.Second {
				t.Errorf("%d nodes: told after %v", n, took)
			}
		})
	}
}
