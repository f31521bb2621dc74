package fallback_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// want asks for name for somebody who would go on without the service, and says what that comes to.
func (w *world) want(name string) driver.Meaning {
	w.Helper()
	c := w.degrading(name)
	_, err := w.Acquire(w.Context(), c)
	return driver.Explain(err)
}

func (w *world) acquire(name string) driver.Claim {
	w.Helper()
	c := w.claim(name)
	_, err := w.Acquire(w.Context(), c)
	w.check(err)
	return c
}

// Core has a line for each name, and a second Locker has one, too.
func TestDegradedLeasesExcludeEachOtherWithoutALine(t *testing.T) {
	t.Parallel()
	virtual(t, func(w *world) {
		w.link.All(lab.Refused)
		first, d := w.degraded("name")
		if !d || w.want("name").Kind != driver.HeldBy {
			w.Error("two at once")
		}
		began := time.Now()
		time.AfterFunc(time.Second, func() { w.check(w.Release(context.Background(), first)) })
		next := w.degrading("name")
		ctx := w.in(time.Minute)
		g, err := w.Wait(ctx, next)
		if err != nil || g.Degraded == "" || time.Since(began) != time.Second {
			w.Errorf("%v after %s", err, time.Since(began))
		}
		next.Token = g.Degraded
		w.check(w.Release(w.Context(), next))
		if n := w.Names(); n > 0 {
			w.Errorf("%d names are left", n)
		}
	})
}

func TestARenewedLeaseOfThisProcessExcludesDegradedOnes(t *testing.T) {
	t.Parallel()
	virtual(t, func(w *world) {
		c := w.acquire("name")
		time.Sleep(8 * time.Second)
		w.check(w.Renew(w.Context(), []driver.Claim{c})[0])
		time.Sleep(8 * time.Second)
		w.link.All(lab.Refused)
		if w.want("name").Kind != driver.HeldBy {
			w.Error("two at once")
		}
		time.Sleep(2 * time.Second)
		if _, d := w.degraded("name"); !d {
			w.Error("its time is over")
		}
	})
}

func TestWhatNobodyHeardOfIsInNobodysWay(t *testing.T) {
	t.Parallel()
	virtual(t, func(w *world) {
		c := w.acquire("name") // and core has not heard the answer
		w.link.All(lab.Refused)
		c.Degrade = true
		if g, err := w.Acquire(w.Context(), c); err != nil || g.Degraded == "" {
			w.Error(err)
		}
	})
}

func TestASecondAfterAnOutageWasSeenSomebodyAsks(t *testing.T) {
	t.Parallel()
	virtual(t, func(w *world) {
		w.link.All(lab.RequestLost)
		if _, d := w.degraded("first"); !d {
			w.Error("not degraded")
		}
		w.link.Heal()
		time.Sleep(time.Second)
		if _, d := w.degraded("name"); d {
			w.Error("degraded, and nobody has asked")
		}
	})
}

func TestIfAllCallersLeaveEarlySomebodyFindsOut(t *testing.T) {
	t.Parallel()
	virtual(t, func(w *world) {
		w.link.All(lab.RequestLost)
		c := w.degrading("name")
		ctx, cancel := context.WithCancel(w.Context())
		time.AfterFunc(100*time.Millisecond, cancel)
		if _, err := w.Acquire(ctx, c); !driver.Explain(err).Open() {
			w.Error(err)
		}
		time.Sleep(2500 * time.Millisecond)
		ctx = w.in(100 * time.Millisecond)
		if g, err := w.Acquire(ctx, c); err != nil || g.Degraded == "" {
			w.Error(err)
		}
	})
}

func TestANameThatTheServiceHasCalledHeldIsNotTakenForATTL(t *testing.T) {
	t.Parallel()
	for how, tell := range map[string]func(w *world){
		"in an answer": func(w *world) {
			if w.want("name").Kind != driver.HeldBy {
				w.Error("not held")
			}
		},
		"while it waits": func(w *world) {
			ctx, cancel := context.WithTimeout(w.Context(), time.Second)
			w.Cleanup(cancel)
			go func() { _, _ = w.Wait(ctx, w.claim("name")) }()
			synctest.Wait()
		},
	} {
		virtual(t, func(w *world) {
			other := lab.New(w.store)
			c := w.claim("name")
			_, err := other.Acquire(w.Context(), c)
			w.check(err)
			tell(w)
			w.link.All(lab.Refused)
			if m := w.want("name"); !m.Nobody {
				w.Errorf("%s: %+v", how, m)
			}
			w.link.Heal()
			time.Sleep(5 * time.Second) // places in the queue are dead by then
			w.check(other.Release(w.Context(), c))
			w.check(w.Release(w.Context(), w.acquire("name"))) // so nobody else is at work
			w.link.All(lab.Refused)
			if _, d := w.degraded("name"); !d {
				w.Errorf("%s: not degraded", how)
			}
		})
	}
}

func TestAGrantBesideADegradedLeaseIsLeftToWhoeverHasAsked(t *testing.T) {
	t.Parallel()
	virtual(t, func(w *world) {
		w.link.Next(lab.OpAcquire, lab.HeldBack, lab.Refused)
		late := make(chan error)
		go func() {
			_, err := w.Acquire(w.Context(), w.claim("name"))
			late <- err
		}()
		synctest.Wait()
		if _, d := w.degraded("name"); !d {
			w.Error("not degraded")
		}
		w.link.Deliver()
		if err := <-late; !driver.Explain(err).Open() || !driver.Explain(err).Again() {
			w.Error(err)
		}
		if n := w.link.Calls(lab.OpRelease); n > 0 { // its token may be asked with again
			w.Errorf("%d releases", n)
		}
	})
}

func TestOneRoundOfAWaitIsOneCall(t *testing.T) {
	t.Parallel()
	virtual(t, func(w *world) {
		w.acquire("name")
		c := w.degrading("name")
		ctx := w.in(time.Second)
		if _, err := w.Wait(ctx, c); driver.Explain(err).Kind != driver.HeldBy || w.link.Calls(lab.OpWait) != 1 {
			w.Errorf("%v after %d calls", err, w.link.Calls(lab.OpWait))
		}
	})
}

func TestProbesAreFew(t *testing.T) {
	t.Parallel()
	virtual(t, func(w *world) {
		w.link.Delay(10*time.Millisecond, 10*time.Millisecond)
		for range 100 { // they all leave early
			ctx, cancel := context.WithTimeout(w.Context(), 10*time.Millisecond)
			c := w.degrading("name")
			if _, err := w.Acquire(ctx, c); !driver.Explain(err).Open() {
				w.Error(err)
			}
			cancel()
		}
		if n := w.link.Calls(lab.OpRenew); n < 2 || n > 5 {
			w.Errorf("%d probes in a second", n)
		}
	})
}
