package redlock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// A reply that was lost at a node is confirmed by the next one there.
func TestAReleaseAskedForAgainRemembersWhatItHasHeard(t *testing.T) {
	t.Parallel()
	inMesh(t, 3, func(t *testing.T, m *mesh) {
		p := m.holder("token")
		p.next(lab.OpRelease, 0, lab.ReplyLost)
		p.links[2].All(lab.Refused, lab.OpRelease)
		isUnknown(t, p.store.Release(t.Context(), p.claim("token")))
		ok(t, p.store.Release(t.Context(), p.claim("token")))
		p.links[2].Heal()
		time.Sleep(time.Second) // a pause, and one more try
		m.wantTaken(0)
		if n := redlock.Ballots(p.store); n != 0 {
			t.Errorf("%d ballots are left", n)
		}
	})
}

func TestNothingIsLeftOfAnAcquireThatWasGivenUp(t *testing.T) {
	t.Parallel()
	for name, fate := range map[string]lab.Fate{"request": lab.HeldBack, "reply": lab.ReplyHeldBack, "lost reply": lab.ReplyLost} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inMesh(t, 5, func(t *testing.T, m *mesh) {
				p := m.process()
				p.next(lab.OpAcquire, fate, fate, fate, fate, fate)
				_, err := p.store.Acquire(short(t, time.Second), p.claim("token"))
				isUnknown(t, err)
				m.wantTaken(0) // at once, though no node has answered
				p.deliver()
				m.wantTaken(0)
				if n := redlock.Ballots(p.store); n != 0 {
					t.Errorf("%d ballots are left", n)
				}
			})
		})
	}
}

// The clean-up of a split vote must not find the next attempt, which core makes with the same
// token.
func TestALateReleaseDoesNotFindTheNextAttempt(t *testing.T) {
	t.Parallel()
	inMesh(t, 3, func(t *testing.T, m *mesh) {
		p := m.process()
		m.squat(0, 1)
		p.links[0].Delay(0, time.Millisecond) // so that the other one grants first
		p.links[1].Delay(0, time.Millisecond)
		p.links[2].Next(lab.OpRelease, lab.HeldBack)
		_, err := p.store.Acquire(short(t, time.Second), p.claim("token"))
		isHeld(t, err)
		for i := range 2 {
			ok(t, m.stores[i].Release(t.Context(), driver.Claim{Name: "name", Token: "squatter"}))
		}
		ok(t, m.stores[2].Release(t.Context(), p.links[2].LastClaim())) // as if it had arrived
		_, err = p.store.Acquire(t.Context(), p.claim("token"))
		ok(t, err)
		m.wantTaken(3)
		p.deliver() // now it arrives once more
		m.wantTaken(3)
		ok(t, p.store.Release(t.Context(), p.claim("token")))
		m.wantTaken(0)
	})
}

func TestAReleaseInMidAcquireWins(t *testing.T) {
	t.Parallel()
	inMesh(t, 3, func(t *testing.T, m *mesh) {
		p := m.process()
		for _, l := range p.links {
			l.Delay(ttl/20, ttl/20)
		}
		answer := make(chan error, 1)
		go func() {
			_, err := p.store.Acquire(t.Context(), p.claim("token"))
			answer <- err
		}()
		time.Sleep(ttl / 40)
		_ = p.store.Release(t.Context(), p.claim("token")) // whose it was is open
		if err := <-answer; err == nil {
			t.Error("granted")
		}
		time.Sleep(4 * time.Second)
		m.wantTaken(0)
	})
}

func TestAnAcquireOfATokenInUseThatFailsLeavesItInUse(t *testing.T) {
	t.Parallel()
	inMesh(t, 3, func(t *testing.T, m *mesh) {
		p := m.holder("token")
		p.flush(0)
		m.squat(0)
		p.next(lab.OpAcquire, 0, lab.Refused, 0)
		_, err := p.store.Acquire(t.Context(), p.claim("token"))
		isUnknown(t, err) // and not held: it is ours
		m.wantTaken(3)
		ok(t, p.renew())
		time.Sleep(ttl)
		_, err = p.store.Acquire(t.Context(), p.claim("token")) // it is over, so this is a new one
		ok(t, err)
		ok(t, p.store.Release(t.Context(), p.claim("token")))
		m.wantTaken(1)
	})
}

// What a node said is there for errors.As; its certainties are not the quorum's.
func TestAnErrorOfOneNodeDoesNotSpeakForAll(t *testing.T) {
	t.Parallel()
	inMesh(t, 3, func(t *testing.T, m *mesh) {
		p := m.process()
		p.next(lab.OpAcquire, lab.Refused, lab.ReplyReset, lab.ReplyReset)
		_, err := p.store.Acquire(t.Context(), p.claim("token"))
		isUnknown(t, err)
		is(t, err, lab.ErrReset)
		time.Sleep(time.Second)
		_, err = p.locks.TryAcquire(t.Context(), "name")
		ok(t, err)
	})
}

func TestCloseWaitsForTheCleanUpAndNotForEver(t *testing.T) {
	t.Parallel()
	inMesh(t, 3, func(t *testing.T, m *mesh) {
		p := m.process()
		x, err := p.locks.Acquire(t.Context(), "name")
		ok(t, err)
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
	inMesh(t, 3, func(t *testing.T, m *mesh) {
		p := m.holder("token-of-core")
		secret := p.links[0].LastClaim().Token
		p.links[0].All(lab.ReplyReset)
		p.links[1].All(lab.ReplyReset)
		_, err := p.store.Acquire(t.Context(), p.claim("token-of-core"))
		for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q"} {
			for _, v := range []any{p.store, err, p.locks} {
				if s := fmt.Sprintf(verb, v); strings.Contains(s, secret) || strings.Contains(s, "token-of-core") {
					t.Errorf("%s of %T: %s", verb, v, s)
				}
			}
		}
		if errors.Is(err, core.ErrInvalid) {
			t.Error(err)
		}
	})
}

func TestAReleaseThatIsAskedForWhileAnotherGivesUpIsSentAgain(t *testing.T) {
	t.Parallel()
	inMesh(t, 3, func(t *testing.T, m *mesh) {
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
			inMesh(t, 5, func(t *testing.T, m *mesh) {
				p := m.process()
				if release { // two of the grants come after the release
					p.next(lab.OpAcquire, lab.RequestLate, lab.RequestLate)
					_, err := p.store.Acquire(t.Context(), p.claim("token"))
					ok(t, err)
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
	inMesh(t, 3, func(t *testing.T, m *mesh) {
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
