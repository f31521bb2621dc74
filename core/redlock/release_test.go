package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/lab"
)

func TestCloseWaitsForTheCleanUpAndNotForEver(t *testing.T) {
	t.Parallel()
	overNodes(t, 3, func(t *testing.T, m *nodeSet) {
		p := m.process()
		x := acquire(t, p.locks, "name")
		synctest.Wait()
		p.links[1].Next(lab.OpRelease, lab.Refused, lab.ReplyReset, lab.Refused)
		ok(t, x.Release(t.Context()))
		ok(t, p.locks.Close(t.Context()))
		if n := m.taken(); n != 0 {
			t.Errorf("taken at %d nodes", n)
		}

		q := m.holder("token")
		q.links[0].Next(lab.OpRelease, lab.HeldBack)
		ok(t, q.store.Release(t.Context(), q.claim("token")))
		began := time.Now()
		if err := q.locks.Close(t.Context()); err == nil || !strings.Contains(err.Error(), "not answered") {
			t.Errorf("close: %v", err)
		}
		if took := time.Since(began); took != 3*time.Second {
			t.Errorf("took %s", took)
		}
		q.deliver()
	})
}

func TestNothingPrintsAToken(t *testing.T) {
	t.Parallel()
	overNodes(t, 3, func(t *testing.T, m *nodeSet) {
		p := m.holder("token-of-core")
		secret := p.links[0].LastClaim().Token
		p.next(lab.OpAcquire, lab.ReplyReset, lab.ReplyReset)
		err := acquires(t, p, p.claim("token-of-core"))
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			if s := fmt.Sprintf(verb+verb, p.store, err); strings.Contains(s, secret) || strings.Contains(s, "token-of-core") {
				t.Errorf("%s: %s", verb, s)
			}
		}
	})
}

func TestAReleaseThatIsAskedForWhileAnotherGivesUpIsSentAgain(t *testing.T) {
	t.Parallel()
	overNodes(t, 3, func(t *testing.T, m *nodeSet) {
		p := m.holder("token")
		p.links[0].All(lab.Refused)
		p.links[1].All(lab.Refused)
		began := time.Now()
		isUnknown(t, p.store.Release(t.Context(), p.claim("token")))
		time.Sleep(2*time.Second - 10*time.Millisecond - time.Since(began)) // between two of its attempts
		isUnknown(t, p.store.Release(short(t, time.Hour), p.claim("token")))
		if took := time.Since(began); took > 3*time.Second {
			t.Errorf("nothing was tried, and it was said after %v", took)
		}
	})
}

func TestWhatANodeGrantsLateIsGivenBackWithinASecond(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{time.Millisecond, ttl / 10, ttl * 8 / 10} {
		for _, release := range []bool{false, true} {
			overNodes(t, 5, func(t *testing.T, m *nodeSet) {
				p := m.process()
				if release { // two of the grants come after the release
					p.next(lab.OpAcquire, lab.RequestLate, lab.RequestLate)
					ok(t, acquires(t, p, p.claim("token")))
					time.Sleep(2 * time.Second) // nobody waits for the two any more
					ok(t, p.store.Release(t.Context(), p.claim("token")))
				} else {
					for _, l := range p.links[:3] {
						l.All(lab.RequestLate, lab.OpAcquire)
					}
					_, err := p.locks.TryAcquire(short(t, time.Second), "name")
					if !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				}
				time.Sleep(late)
				m.wantTaken(0)
				p.deliver()
				time.Sleep(time.Second)
				m.wantTaken(0)
			})
		}
	}
}

// A node is silent. Its acquire is under way when the Locker closes: nothing of it is to outlive
// CloseIdle, which waits for three seconds.
func TestCleanUpBeginsNoMoreOnceItIsClosed(t *testing.T) {
	t.Parallel()
	overNodes(t, 3, func(t *testing.T, m *nodeSet) {
		p := m.process()
		p.links[0].All(lab.RequestLost, lab.OpAcquire)
		x, err := p.locks.TryAcquire(t.Context(), "name")
		ok(t, err)
		ok(t, x.Release(t.Context()))
		began := time.Now()
		if err := p.locks.Close(t.Context()); err != nil {
			t.Errorf("close, after %s: %v", time.Since(began), err)
		}
		sent := p.links[0].Calls(lab.OpRelease)
		time.Sleep(30 * time.Second)
		if n := p.links[0].Calls(lab.OpRelease) - sent; n > 0 {
			t.Errorf("%d commands after Close, which took %s", n, time.Since(began)-30*time.Second)
		}
	})
}
