package redlock_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// holder is a process that holds the name at every node.
func (m *nodeSet) holder(token string) *process {
	m.t.Helper()
	p := m.process()
	_, err := p.store.Acquire(m.t.Context(), p.claim(token))
	ok(m.t, err)
	m.wantTaken(len(m.stores))
	return p
}

func (p *process) renew() error {
	return p.store.Renew(p.m.t.Context(), []driver.Claim{p.claim("token")})[0]
}

func TestALeaseOutlivesEveryNodesMemoryOneAtATime(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 4, 5} {
		overNodes(t, n, func(t *testing.T, m *nodeSet) {
			p := m.process()
			x, err := p.locks.Acquire(t.Context(), "name")
			ok(t, err)
			for i := range 10 * n {
				synctest.Wait()
				p.flush(i % n)
				m.wantTaken(n - 1)
				time.Sleep(ttl / 2) // one renewal at least
				m.wantTaken(n)
				ok(t, x.Err())
			}
			ok(t, x.Release(t.Context()))
			m.wantTaken(0)
		})
	}
}

// A grant that is lost is not released, so a healing that is later than that cleans up
// behind itself.
func TestALateHealingDoesNotOutliveALoss(t *testing.T) {
	t.Parallel()
	overNodes(t, 3, func(t *testing.T, m *nodeSet) {
		p := m.holder("token")
		p.flush(0)
		p.links[0].Next(lab.OpAcquire, lab.HeldBack)
		ok(t, p.renew())
		time.Sleep(ttl)
		m.wantTaken(0)
		p.deliver()
		m.wantTaken(0)
		_, err := p.store.Acquire(t.Context(), p.claim("token")) // starts afresh
		ok(t, err)
		m.wantTaken(3)
		ok(t, p.store.Release(t.Context(), p.claim("token")))
		m.wantTaken(0)
	})
}

// Healings at one node go one after the other. One that is held up is not to hold up another
// until that one's grant is over.
func TestHealingsGoOneAfterTheOtherAndNoneBeginsAfterTheTenure(t *testing.T) {
	t.Parallel()
	overNodes(t, 3, func(t *testing.T, m *nodeSet) {
		p := m.process()
		var claims []driver.Claim
		for _, name := range []string{"one", "two"} {
			c := driver.Claim{Name: name, Token: "token", TTL: ttl}
			claims = append(claims, c)
			_, err := p.store.Acquire(t.Context(), c)
			ok(t, err)
			synctest.Wait()
			p.flush(0)
		}
		p.links[0].Next(lab.OpAcquire, lab.HeldBack)
		for _, err := range p.store.Renew(t.Context(), claims) {
			ok(t, err)
		}
		synctest.Wait()
		ok(t, p.store.Renew(t.Context(), claims[:1])[0]) // no second one beside that which is under way
		time.Sleep(ttl)
		p.deliver()
		synctest.Wait()
		if n := p.links[0].Calls(lab.OpAcquire); n != 3 {
			t.Errorf("%d acquires; want one for each and one healing", n)
		}
	})
}

func TestOneStoreRenewsManyAndAnswersEach(t *testing.T) {
	t.Parallel()
	overNodes(t, 5, func(t *testing.T, m *nodeSet) {
		p := m.process()
		acquire := func(from, to int) (claims []driver.Claim) {
			for i := from; i < to; i++ {
				c := driver.Claim{Name: fmt.Sprint("name-", i), Token: "token", TTL: ttl}
				ok(t, acquires(t, p, c))
				claims = append(claims, c)
			}
			return claims
		}
		renewed := func(claims []driver.Claim) {
			for _, err := range p.store.Renew(t.Context(), claims) {
				ok(t, err)
			}
		}
		claims := acquire(0, 2000)[1950:] // more than the number at which it looks for what is over
		for range 20 {
			time.Sleep(ttl / 3)
			renewed(claims)
		}
		acquire(2000, 5000) // throws out the others, not these
		renewed(claims)
		if n := redlock.Votes(p.store); n > 3500 {
			t.Errorf("%d votes", n)
		}
	})
}

// Its acquire was executed, and the reply was lost. It renews, but is not known to have granted for long enough.
func TestANodeWhoseReplyWasLostCountsFromTheNextRenewalOn(t *testing.T) {
	t.Parallel()
	for _, n := range []int{3, 5} {
		overNodes(t, n, func(t *testing.T, m *nodeSet) {
			p := m.process()
			for _, l := range p.links[n/2+1:] {
				l.Next(lab.OpAcquire, lab.ReplyLost)
			}
			x, err := p.locks.Acquire(t.Context(), "name")
			ok(t, err)
			time.Sleep(2 * time.Second)
			p.links[0].All(lab.Refused) // one node is down, before the first renewal
			time.Sleep(15 * time.Second)
			ok(t, x.Err())
			ok(t, x.Release(t.Context()))
		})
	}
}
