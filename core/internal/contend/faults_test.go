package contend

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/hold"
	"github.com/holdfast-go/holdfast/core/internal/term"
)

// odd is a backend whose Wait is something else.
type odd struct {
	*memory

	can  driver.Capabilities
	wait func(context.Context, driver.Claim) (driver.Grant, error)
}

func (o *odd) Capabilities() driver.Capabilities { return o.can }
func (o *odd) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return o.wait(ctx, c)
}

func plain(label string) hold.Want {
	return hold.Want{Name: "n", Terms: &hold.Terms{Wish: claim.Wish{Label: label, TTL: 3 * time.Second}, Turn: term.Turn{Every: time.Second}}}
}

// beside runs fn while another process has the name.
func beside(t *testing.T, m *memory, fn func()) {
	t.Helper()
	r, end := newRoom(m)
	defer end()
	if err := do(t.Context(), r, &site{t: t}, "them", plain(""), Forever, fn); err != nil {
		t.Error(err)
	}
	settle(t, r)
}

func TestARefusalEndsOnlyItsOwnWish(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		o := &odd{memory: m, can: m.Capabilities(), wait: func(ctx context.Context, c driver.Claim) (driver.Grant, error) {
			if c.Label == "bad" {
				return driver.Grant{}, driver.Refused(errors.New("no such label"))
			}
			return m.Wait(ctx, c)
		}}
		r, end := newRoom(o)
		defer end()
		s, failed := &site{t: t}, make(chan string, 21)
		var all sync.WaitGroup
		beside(t, m, func() {
			for i := range 21 {
				label := fmt.Sprint(i)
				if i == 7 {
					label = "bad"
				}
				all.Go(func() {
					if err := do(t.Context(), r, s, label, plain(label), Forever, func() {}); err != nil {
						failed <- label
					}
				})
			}
			time.Sleep(time.Second)
		})
		all.Wait()
		if len(failed) > 1 || len(failed) == 1 && <-failed != "bad" {
			t.Errorf("%d failed", len(failed))
		}
		settle(t, r)
	})
}

func TestAPanicOfTheClientIsRaisedOnTheWaitersGoroutine(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		o := &odd{memory: m, can: m.Capabilities(), wait: func(context.Context, driver.Claim) (driver.Grant, error) { panic("boom") }}
		r, end := newRoom(o)
		defer end()
		beside(t, m, func() {
			defer func() {
				if p, ok := recover().(*call.Panic); !ok || p.Value != "boom" {
					t.Error(p)
				}
			}()
			_ = do(t.Context(), r, &site{t: t}, "us", plain(""), Forever, func() {})
		})
		settle(t, r)
		if owned, queued := m.left(); owned+queued > 0 {
			t.Errorf("%d owned, %d queued", owned, queued)
		}
	})
}

func TestAWaitThatHangsCostsOneCallAndEndsInNoAnswer(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, hangs := newMemory(), make(chan struct{})
		var calls atomic.Int32
		o := &odd{memory: m, wait: func(context.Context, driver.Claim) (driver.Grant, error) {
			calls.Add(1)
			<-hangs
			return driver.Grant{}, errors.New("at last")
		}}
		r, end := newRoom(o)
		defer end()
		beside(t, m, func() {
			began := time.Now()
			err := do(t.Context(), r, &site{t: t}, "us", plain(""), Forever, func() {})
			if took := time.Since(began); !driver.Explain(err).Nobody || took < 3*time.Second || took > 20*time.Second || calls.Load() != 1 {
				t.Errorf("%v after %s and %d calls", err, took, calls.Load())
			}
		})
		close(hangs)
		settle(t, r)
	})
}

func TestATryBesideAnAskerIsAnsweredAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		r, end := newRoom(m)
		defer end()
		beside(t, m, func() {
			ctx, cancel := context.WithCancel(t.Context())
			var all sync.WaitGroup
			all.Go(func() { _ = do(ctx, r, &site{t: t}, "waits", plain(""), Forever, func() {}) })
			time.Sleep(100 * time.Millisecond)
			began, before := time.Now(), m.commands()
			err := do(t.Context(), r, &site{t: t}, "tries", plain(""), 0, func() {})
			var held *Held
			if !errors.As(err, &held) || held.Here != nil || time.Since(began) > 0 || m.commands() != before {
				t.Errorf("%v after %s", err, time.Since(began))
			}
			cancel()
			all.Wait()
		})
		settle(t, r)
	})
}

func TestALongWaitIsToldOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		r, end := newRoom(m)
		defer end()
		beside(t, m, func() {
			w := plain("")
			w.Work = &job{site: &site{t: t}}
			g := &guest{ctx: t.Context(), room: r, want: &w, long: 9 * time.Second}
			_, err := g.get(time.Minute)
			if g.told != 1 || !errors.Is(err, ErrBudget) || g.knows.News.Held == nil {
				t.Errorf("told %d times, %v, knows %+v", g.told, err, g.knows)
			}
		})
		settle(t, r)
	})
}

func TestWhoWaitsWhenTheRoomIsClosedIsToldSo(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newMemory()
		r, end := newRoom(m)
		beside(t, m, func() {
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					if err := do(t.Context(), r, &site{t: t}, "us", plain(""), Forever, func() {}); !errors.Is(err, ErrClosed) {
						t.Error(err)
					}
				})
			}
			time.Sleep(100 * time.Millisecond)
			end()
			all.Wait()
		})
		settle(t, r)
		if owned, queued := m.left(); owned+queued > 0 {
			t.Errorf("%d owned, %d queued", owned, queued)
		}
	})
}

// local is a driver around a driver: while the service is silent, it grants in memory.
type local struct {
	*memory

	here   *memory
	silent atomic.Bool
}

func (l *local) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	switch {
	case !l.silent.Load():
		return l.memory.Acquire(ctx, c)
	case !c.Degrade:
		return driver.Grant{}, driver.ErrCannotAnswer
	}
	own := c
	own.Token = "local of " + c.Token
	g, err := l.here.Acquire(ctx, own)
	g.Degraded, g.Fences = own.Token, 1
	return g, err
}

func (l *local) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return driver.Poll(ctx, c, l.Acquire)
}

func (l *local) Release(ctx context.Context, c driver.Claim) error {
	if len(c.Token) > 22 {
		return l.here.Release(ctx, c)
	}
	if l.silent.Load() {
		return driver.ErrCannotAnswer
	}
	return l.memory.Release(ctx, c)
}

func (l *local) Renew(ctx context.Context, claims []driver.Claim) []error {
	return l.here.Renew(ctx, claims)
}

func TestAGrantWithoutTheServiceHasATokenOfItsOwn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &local{memory: newMemory(), here: newMemory()}
		l.silent.Store(true)
		r, end := newRoom(l)
		defer end()
		s := &site{t: t}
		var all sync.WaitGroup
		for i := range 5 {
			w := plain("")
			w.Degrade = i < 3
			all.Go(func() {
				err := do(t.Context(), r, s, fmt.Sprint(i), w, time.Minute, func() { time.Sleep(5 * time.Second) })
				if w.Degrade != (err == nil) || err != nil && !driver.Explain(err).Nobody {
					t.Error(i, err)
				}
			})
		}
		all.Wait()
		if s.done.Load() != 3 {
			t.Errorf("%d have worked", s.done.Load())
		}
		l.silent.Store(false)
		settle(t, r)
		for _, m := range []*memory{l.memory, l.here} {
			if owned, queued := m.left(); owned+queued > 0 {
				t.Errorf("%d owned, %d queued", owned, queued)
			}
		}
	})
}

func TestAHandOffPassesTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &site{t: t}
		a, endA := newRoom(m)
		defer endA()
		b, endB := newRoom(m)
		defer endB()
		w := plain("")
		w.Work = &job{site: s}
		var all sync.WaitGroup
		got := make(chan *hold.Hold, 1)
		beside(t, m, func() { // so that the grant has turns for those who wait
			all.Go(func() {
				h, err := get(t.Context(), a, &w, Forever)
				if err != nil {
					t.Error(err)
				}
				got <- h
			})
			time.Sleep(time.Millisecond)
			for _, r := range []*Room{a, b} {
				all.Go(func() {
					if err := do(t.Context(), r, s, "waits", plain(""), Forever, func() {}); err != nil {
						t.Error(err)
					}
				})
			}
			time.Sleep(2 * time.Second)
		})
		h := <-got
		if o, known := leave(t.Context(), a, h, claim.Left{Keep: time.Minute, Handoff: "secret"}); !known || o.Result != term.Freed {
			t.Error(o, known)
		}
		time.Sleep(time.Second)
		taker := plain("")
		taker.Handoff, taker.Work = "secret", &job{site: s, name: "taker"}
		h, err := get(t.Context(), b, &taker, 0)
		if err != nil || s.done.Load() > 0 {
			t.Fatalf("%v, and %d have worked in between", err, s.done.Load())
		}
		if _, err := get(t.Context(), b, &taker, 0); err == nil {
			t.Error("it was used twice")
		}
		taker.Work.(*job).begin(h.Fence())
		time.Sleep(10 * time.Second)
		taker.Work.(*job).end()
		leave(t.Context(), b, h, claim.Left{})
		all.Wait()
		settle(t, a, b)
	})
}

// late is a backend whose first grants are nearly over when they are heard.
type late struct {
	*memory

	acquires, waits atomic.Int32
}

func (l *late) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g, err := l.memory.Acquire(ctx, c)
	if l.acquires.Add(1) == 1 {
		g.Asked = time.Now().Add(-2500 * time.Millisecond)
	}
	return g, err
}

func (l *late) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	g, err := l.memory.Wait(ctx, c)
	if l.waits.Add(1) == 1 {
		g.Asked = time.Now().Add(-2500 * time.Millisecond)
	}
	return g, err
}

func TestAGrantThatIsNearlyOverIsAskedForAgain(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		l := &late{memory: newMemory()}
		r, end := newRoom(l)
		defer end()
		w := plain("")
		w.Work = &job{site: &site{t: t}}
		h, err := get(t.Context(), r, &w, Forever)
		if err != nil {
			t.Fatal(err)
		}
		if left, life := h.Left(r.Port.Clock.Read()); left < life-10*time.Millisecond || l.acquires.Load() != 1 || l.waits.Load() != 2 {
			t.Errorf("left %s after %d and %d", left, l.acquires.Load(), l.waits.Load())
		}
		leave(t.Context(), r, h, claim.Left{})
		settle(t, r)
		if owned, queued := l.left(); owned+queued > 0 {
			t.Errorf("%d owned, %d queued", owned, queued)
		}
	})
}
