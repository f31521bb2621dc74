package fallback_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/drivertest"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// Whoever does not want to go on without the service has the other driver, as it is.
func TestConformance(t *testing.T) {
	t.Parallel()
	drivertest.RunInBubble(t, func(testing.TB) drivertest.Config {
		s := memlock.New()
		return drivertest.Config{
			Driver: func() driver.Driver { return fallback.New(s) },
			Unreachable: func() driver.Driver {
				down := memlock.New()
				down.SetDown(true)
				return fallback.New(down)
			},
		}
	})
}

func TestAWrappedDriverIsFoundAndNilIsInvalid(t *testing.T) {
	t.Parallel()
	s := memlock.New()
	if fallback.New(s).Unwrap() != driver.Driver(s) {
		t.Error("another one")
	}
	if _, err := core.New(fallback.New(nil)); !errors.Is(err, core.ErrInvalid) {
		t.Error(err)
	}
}

// world is a driver over a network, and calls with a time limit.
type world struct {
	*testing.T

	*fallback.Driver

	store *memlock.Store
	link  *lab.Net
	n     int
}

func virtual(t *testing.T, f func(w *world)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		w := &world{T: t, store: memlock.New()}
		w.link = lab.New(w.store)
		w.Driver = fallback.New(w.link)
		f(w)
		w.link.Heal()
		backendtest.OK(w, w.Close(context.Background()))
	})
}

func (w *world) claim(name string) driver.Claim {
	w.n++
	return driver.Claim{Name: name, Token: fmt.Sprint("token", w.n), TTL: 10 * time.Second}
}

// degrading is a claim of somebody who would go on without the service.
func (w *world) degrading(name string) driver.Claim {
	c := w.claim(name)
	c.Degrade = true
	return c
}

// in is a context that ends after d.
func (w *world) in(d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(w.Context(), d)
	w.Cleanup(cancel)
	return ctx
}

// goesLocal asks for a degraded grant of a name that nobody has, and fails the test unless it is, or is not, one.
func (w *world) goesLocal(name string, want bool) driver.Claim {
	w.Helper()
	c := w.degrading(name)
	g, err := w.Acquire(w.in(driver.Patience(c.TTL)), c)
	backendtest.OK(w, err)
	if d := g.Degraded != ""; d != want || d != (g.Outage != nil) || d && (g.Fence != 0 || g.Fences > 1) {
		w.Errorf("%q: want degraded %t, got %+v", name, want, g)
	}
	if g.Degraded != "" {
		c.Token = g.Degraded
	}
	return c
}

// want asks for name for somebody who would go on without the service, and says what that comes to.
func (w *world) want(name string) driver.Meaning {
	w.Helper()
	_, err := w.Acquire(w.Context(), w.degrading(name))
	return driver.Explain(err)
}

func (w *world) isHeld(name string) {
	w.Helper()
	if m := w.want(name); m.Kind != driver.HeldBy {
		w.Errorf("%q is not held: %+v", name, m)
	}
}

func (w *world) acquire(name string) driver.Claim {
	w.Helper()
	c := w.claim(name)
	_, err := w.Acquire(w.Context(), c)
	backendtest.OK(w, err)
	return c
}

func TestTheFirstAnswerToAnybodyEndsTheOutage(t *testing.T) {
	t.Parallel()
	for name, answer := range map[string]func(w *world, held driver.Claim) error{
		"nobody's": nil,
		"a probe's": func(w *world, _ driver.Claim) error {
			time.Sleep(300 * time.Millisecond)
			w.goesLocal("prober", true)
			return nil
		},
		"an acquire's": func(w *world, _ driver.Claim) error {
			_, err := w.Acquire(w.Context(), w.claim("another"))
			return err
		},
		"a wait's": func(w *world, held driver.Claim) error {
			go func() {
				ctx := w.in(time.Second)
				_, _ = w.Wait(ctx, w.claim(held.Name))
			}()
			return nil
		},
		"a renewal's": func(w *world, held driver.Claim) error { return w.Renew(w.Context(), []driver.Claim{held})[0] },
		"a release's": func(w *world, held driver.Claim) error { return w.Release(w.Context(), held) },
	} {
		virtual(t, func(w *world) {
			w.Log(name)
			held := w.acquire("held")
			w.link.All(lab.RequestLost)
			w.goesLocal("first", true)
			time.Sleep(100 * time.Millisecond)
			w.link.Heal()
			if answer != nil {
				backendtest.OK(w, answer(w, held))
			}
			synctest.Wait()
			w.goesLocal("then", answer == nil)
		})
	}
}

// A call that comes to its end after a probe was refused would otherwise have the next ones ask again, one after the other.
func TestAShortSilenceTakesNothingFromAProofOfMore(t *testing.T) {
	t.Parallel()
	virtual(t, func(w *world) {
		w.link.All(lab.Refused)
		w.link.Next(lab.OpAcquire, lab.RequestLost)
		short := w.claim("short")
		short.TTL, short.Degrade = 3*time.Second, true
		over := make(chan error)
		go func() {
			_, err := w.Acquire(w.Context(), short)
			over <- err
		}()
		synctest.Wait()
		w.goesLocal("refused", true)
		backendtest.OK(w, <-over)
		asked := w.link.Calls(lab.OpAcquire)
		w.goesLocal("then", true)
		if n := w.link.Calls(lab.OpAcquire) - asked; n > 0 {
			w.Errorf("%d calls", n)
		}
	})
}

func TestADegradedGrantIsRenewedAndReleasedHere(t *testing.T) {
	t.Parallel()
	virtual(t, func(w *world) {
		held := w.acquire("held")
		w.link.All(lab.Refused)
		c := w.goesLocal("name", true)
		backendtest.OK(w, w.Renew(w.Context(), []driver.Claim{c})[0])
		w.link.Heal()
		stranger := w.claim("held")
		errs := w.Renew(w.Context(), []driver.Claim{c, held, stranger, c})
		for i, want := range []error{nil, nil, driver.ErrNotOwner, nil} {
			if !errors.Is(errs[i], want) {
				w.Errorf("%d: %v", i, errs[i])
			}
		}
		sent := w.link.Calls(lab.OpRelease) + w.link.Calls(lab.OpRenew)
		backendtest.OK(w, w.Release(w.Context(), c))
		for _, err := range []error{w.Release(w.Context(), c), w.Renew(w.Context(), []driver.Claim{c})[0]} {
			if !errors.Is(err, driver.ErrNotOwner) {
				w.Error(err)
			}
		}
		if n := w.link.Calls(lab.OpRelease) + w.link.Calls(lab.OpRenew) - sent; n > 0 {
			w.Errorf("%d commands", n)
		}
		w.goesLocal("name", false)
	})
}

// While a release has left the name taken, nobody goes local. A command that may have been executed, and then one that was not, is not a
// call in which nothing was executed.
func TestANameThatAReleaseHasKeptStaysTakenAndWhatMayHaveBeenExecutedStaysOpen(t *testing.T) {
	t.Parallel()
	virtual(t, func(w *world) {
		c := w.acquire("name")
		c.Keep = time.Minute // as with a MinHold: so nobody goes local
		backendtest.OK(w, w.Release(w.Context(), c))
		w.link.Next(lab.OpAcquire, lab.ReplyReset, lab.Refused)
		if m := w.want("name"); !m.Open() {
			w.Errorf("%+v", m)
		}
		w.link.All(lab.Refused)
		if m := w.want("name"); !m.Nobody {
			w.Errorf("%+v", m)
		}
		time.Sleep(time.Minute)
		w.goesLocal("name", true)
	})
}
