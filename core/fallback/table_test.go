package fallback_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/internal/lab"
)

// Core has a line for each name, and a second Locker has one, too.
func TestDegradedLeasesExcludeEachOtherWithoutALine(t *testing.T) {
	t.Parallel()
	virtual(t, func(w *world) {
		w.link.All(lab.Refused)
		first := w.goesLocal("name", true)
		w.isHeld("name")
		began := time.Now()
		time.AfterFunc(time.Second, func() { backendtest.OK(w, w.Release(context.Background(), first)) })
		next := w.degrading("name")
		g, err := w.Wait(w.in(time.Minute), next)
		if err != nil || g.Degraded == "" || time.Since(began) != time.Second {
			w.Errorf("%v after %s", err, time.Since(began))
		}
		next.Token = g.Degraded
		w.link.Heal()
		c, told := w.claim("name"), 0 // who would not go local, and finds it all the same
		c.Heard = func(*driver.Held) { told++ }
		if _, err := w.Acquire(w.Context(), c); driver.Explain(err).Kind != driver.HeldBy {
			w.Error(err)
		}
		if _, err := w.Wait(w.in(time.Second), c); driver.Explain(err).Kind != driver.HeldBy || told == 0 {
			w.Errorf("%v, told %d times", err, told)
		}
		time.AfterFunc(time.Second, func() { backendtest.OK(w, w.Release(context.Background(), next)) })
		began = time.Now()
		if _, err := w.Wait(w.in(time.Minute), c); err != nil || time.Since(began) != time.Second {
			w.Errorf("%v after %s", err, time.Since(began))
		}
		backendtest.OK(w, w.Release(w.Context(), c))
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
		backendtest.OK(w, w.Renew(w.Context(), []driver.Claim{c})[0])
		time.Sleep(8 * time.Second)
		w.link.All(lab.Refused)
		w.isHeld("name")
		time.Sleep(2 * time.Second)
		w.goesLocal("name", true)
	})
}

// A lease that is lost is not released. Somebody has wanted its name meanwhile.
func TestNamesOfLostLeasesAreForgotten(t *testing.T) {
	t.Parallel()
	virtual(t, func(w *world) {
		const many = 1024
		for i := range many {
			w.acquire(fmt.Sprint(i))
		}
		w.link.All(lab.Refused)
		for i := range many {
			w.isHeld(fmt.Sprint(i))
		}
		w.link.Heal()
		time.Sleep(10 * time.Second)
		w.acquire("name")
		if n := w.Names(); n > 1 {
			w.Errorf("%d names are left", n)
		}
	})
}

func TestWhoHasTakenALostNameExcludesDegradedLeases(t *testing.T) {
	t.Parallel()
	virtual(t, func(w *world) {
		c := w.acquire("name")
		backendtest.OK(w, w.store.Release(w.Context(), c))
		_, err := w.store.Acquire(w.Context(), w.claim("name"))
		backendtest.OK(w, err)
		time.Sleep(3 * time.Second)
		if err := w.Renew(w.Context(), []driver.Claim{c})[0]; driver.Explain(err).Kind != driver.NotOwner {
			w.Error(err)
		}
		w.isHeld("name") // by the service's word
		w.link.All(lab.Refused)
		time.Sleep(9 * time.Second) // c would be over by now
		if m := w.want("name"); m.Kind == driver.Done {
			w.Error("somebody else may be at work")
		}
		time.Sleep(time.Second)
		w.goesLocal("name", true)
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
		w.goesLocal("first", true)
		w.link.Heal()
		time.Sleep(time.Second)
		w.goesLocal("name", false)
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
		if g, err := w.Acquire(w.in(100*time.Millisecond), c); err != nil || g.Degraded == "" {
			w.Error(err)
		}
	})
}

func TestANameThatTheServiceHasCalledHeldIsNotTakenForATTL(t *testing.T) {
	t.Parallel()
	for how, tell := range map[string]func(w *world){
		"in an answer": func(w *world) { w.isHeld("name") },
		"while it waits": func(w *world) {
			ctx := w.in(time.Second)
			go func() { _, _ = w.Wait(ctx, w.claim("name")) }()
			synctest.Wait()
		},
	} {
		virtual(t, func(w *world) {
			other := lab.New(w.store)
			c := w.claim("name")
			_, err := other.Acquire(w.Context(), c)
			backendtest.OK(w, err)
			tell(w)
			time.Sleep(8 * time.Second)
			backendtest.OK(w, other.Renew(w.Context(), []driver.Claim{c})[0])
			tell(w) // once more
			w.link.All(lab.Refused)
			time.Sleep(8 * time.Second)
			if m := w.want("name"); !m.Nobody {
				w.Errorf("%s: %+v", how, m)
			}
			w.link.Heal()
			time.Sleep(5 * time.Second)                                  // places in the queue are dead by then, and c is over
			backendtest.OK(w, w.Release(w.Context(), w.acquire("name"))) // so nobody else is at work
			w.link.All(lab.Refused)
			w.goesLocal("name", true)
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
		w.goesLocal("name", true)
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
		c, told := w.degrading("name"), 0
		c.Heard = func(*driver.Held) { told++ }
		if _, err := w.Wait(w.in(time.Second), c); driver.Explain(err).Kind != driver.HeldBy || w.link.Calls(lab.OpWait) != 1 || told == 0 {
			w.Errorf("%v after %d calls, told %d times", err, w.link.Calls(lab.OpWait), told)
		}
	})
}

func TestProbesAreFew(t *testing.T) {
	t.Parallel()
	virtual(t, func(w *world) {
		w.link.Delay(10*time.Millisecond, 10*time.Millisecond)
		for range 100 { // they all leave early
			if _, err := w.Acquire(w.in(10*time.Millisecond), w.degrading("name")); !driver.Explain(err).Open() {
				w.Error(err)
			}
		}
		if n := w.link.Calls(lab.OpRenew); n < 2 || n > 5 {
			w.Errorf("%d probes in a second", n)
		}
	})
}
