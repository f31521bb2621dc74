package hold

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/tasks"
	"github.com/holdfast-go/holdfast/core/internal/term"
	"github.com/holdfast-go/holdfast/core/internal/watchdog"
)

// renews is a backend that only renews.
type renews struct {
	driver.Driver

	does     func(ctx context.Context, claims []driver.Claim) []error
	commands atomic.Int32
}

func (d *renews) Capabilities() driver.Capabilities { return driver.Capabilities{Punctual: true} }
func (d *renews) Renew(ctx context.Context, claims []driver.Claim) []error {
	d.commands.Add(1)
	return d.does(ctx, claims)
}

// site counts what becomes of holds.
type site struct {
	port    *call.Port
	dog     *watchdog.Dog[*Hold]
	mu      sync.Mutex // protects the fields below
	stopped map[string]term.Loss
	lost    int
	early   bool // one was lost before its contexts had ended
}

func (s *site) Lost(h *Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost++
	_, told := s.stopped[h.Want().Name]
	s.early = s.early || !told
}

func (*site) Renewed(*Hold, time.Duration, error) {}

// seen is what the site has seen so far: the loss of one name, how many were lost, and whether one was lost too early.
func (s *site) seen(name string) (why term.Loss, lost int, early bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.stopped[name], s.lost, s.early
}

type work struct {
	site *site
	name string
}

func (w *work) Values() context.Context { return nil }

func (w *work) Stop(why term.Loss) {
	w.site.mu.Lock()
	defer w.site.mu.Unlock()
	w.site.stopped[w.name] = why
}

func newSite(d driver.Driver, c *clock.Clock) *site {
	s := &site{port: call.New(d, c, tasks.New()), stopped: map[string]term.Loss{}}
	s.dog = watchdog.New[*Hold](s.port)
	return s
}

func (s *site) hold(name string, ttl time.Duration, t term.Turn) *Hold {
	h := New(name, &Site{Watch: s.dog, Keeper: s})
	s.begin(h, ttl, t)
	return h
}

func (s *site) begin(h *Hold, ttl time.Duration, t term.Turn) {
	w := &Want{Name: h.Claim.Name, Terms: &Terms{Wish: claim.Wish{TTL: ttl}, Turn: t}, Work: &work{s, h.Claim.Name}}
	now := s.port.Clock.Read()
	h.Begin(call.Reply{Asked: now, Now: now, Grant: driver.Grant{Fence: 1, Fences: 2}}, ttl, w)
}

// enough is half of the life of h.
func enough(h *Hold, s *site) time.Duration {
	_, life := h.Left(s.port.Clock.Read())
	return life / 2
}

func (s *site) end(h *Hold) Outcome {
	now := s.port.Clock.Read()
	e, _, ok := h.End(now, claim.Left{})
	if !ok {
		return Outcome{Result: term.WasLost}
	}
	for idle := e.Idle(); idle != nil; idle = e.Idle() {
		<-idle
	}
	if _, _, ok := e.Send(s.port.Clock.Read()); ok {
		e.Answered(driver.Meaning{Kind: driver.Done})
	}
	return e.Over(s.port.Clock.Read())
}

func all(claims []driver.Claim, of func(c driver.Claim) error) []error {
	errs := make([]error, len(claims))
	for i, c := range claims {
		errs[i] = of(c)
	}
	return errs
}

var errPoison = errors.New("no")

func TestOneClaimAndOneSilentNodeCostNobodyElseAnything(t *testing.T) {
	t.Parallel()
	type does = func(ctx context.Context, claims []driver.Claim) []error
	for what, row := range map[string]struct {
		lost int
		does does
	}{
		"claims that spoil their commands": {100, func(_ context.Context, claims []driver.Claim) []error {
			for _, c := range claims {
				if strings.HasSuffix(c.Name, "7") {
					return all(claims, func(driver.Claim) error { return errPoison })
				}
			}
			return all(claims, func(driver.Claim) error { return nil })
		}},
		"a claim that makes its command hang": {1, func(ctx context.Context, claims []driver.Claim) []error {
			for _, c := range claims {
				if c.Name == "n7" {
					<-ctx.Done()
					return all(claims, func(driver.Claim) error { return ctx.Err() })
				}
			}
			return all(claims, func(driver.Claim) error { return nil })
		}},
		"a node that is silent": {1, func(ctx context.Context, claims []driver.Claim) []error {
			errs := all(claims, func(c driver.Claim) error {
				if c.Name == "n7" {
					return driver.ErrCannotAnswer
				}
				return nil
			})
			<-ctx.Done()
			return errs
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := &renews{does: row.does}
			s := newSite(d, clock.New())
			var holds []*Hold
			for i := range 1000 {
				holds = append(holds, s.hold(fmt.Sprintf("n%d", i), 30*time.Second, term.Turn{Every: 10 * time.Second}))
			}
			time.Sleep(2 * time.Minute)
			if why, lost, early := s.seen("n7"); lost != row.lost || why != term.Unreachable || early {
				t.Errorf("%s: %d lost, n7 by %d", what, lost, why)
			}
			for _, h := range holds {
				s.end(h)
			}
			if err := s.port.Tasks.Wait(t.Context()); err != nil || s.dog.Count() > 0 {
				t.Errorf("%v, %d are watched", err, s.dog.Count())
			}
		})
	}
}

func TestAfterAnOutageThousandsAreRenewedInTime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		d := &renews{does: func(ctx context.Context, claims []driver.Claim) []error {
			if since := time.Since(began); since > 10*time.Second && since < 35*time.Second {
				<-ctx.Done()
				return nil
			}
			time.Sleep(100 * time.Millisecond)
			return all(claims, func(driver.Claim) error { return nil })
		}}
		s := newSite(d, clock.New())
		var holds []*Hold
		for i := range 20_000 {
			holds = append(holds, s.hold(fmt.Sprint(i), 30*time.Second, term.Turn{Every: 10 * time.Second}))
		}
		time.Sleep(time.Minute)
		if _, lost, _ := s.seen(""); lost > 0 {
			t.Errorf("%d lost", lost)
		}
		t.Logf("%d commands", d.commands.Load())
		for _, h := range holds {
			s.end(h)
		}
	})
}

func TestAfterASuspensionNoContextGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var slept atomic.Int64
		s := newSite(&renews{}, clock.Skewed(func() time.Duration { return time.Duration(slept.Load()) }, func() time.Duration { return time.Duration(slept.Load()) }))
		s.hold("n", time.Hour, term.Turn{Every: 20 * time.Minute})
		time.Sleep(time.Second)
		slept.Store(int64(2 * time.Hour))
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		if why, _, _ := s.seen("n"); why != term.Expired {
			t.Error(why)
		}
	})
}

func TestConfirmRenewsOnceForAllWhoAsk(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &renews{does: func(_ context.Context, claims []driver.Claim) []error {
			time.Sleep(100 * time.Millisecond)
			return all(claims, func(driver.Claim) error { return nil })
		}}
		s := newSite(d, clock.New())
		h := s.hold("n", 3*time.Second, term.Turn{})
		h.Refresh(t.Context(), s.port, enough(h, s))
		if d.commands.Load() != 0 {
			t.Error("more than half was left")
		}
		time.Sleep(2 * time.Second)
		var askers sync.WaitGroup
		for range 50 {
			askers.Go(func() { h.Refresh(t.Context(), s.port, enough(h, s)) })
		}
		askers.Wait()
		if left, _ := h.Left(s.port.Clock.Read()); d.commands.Load() != 1 || left < 2800*time.Millisecond {
			t.Errorf("%d commands, left %s", d.commands.Load(), left)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		time.Sleep(2 * time.Second)
		h.Refresh(ctx, s.port, enough(h, s))
		time.Sleep(200 * time.Millisecond)
		if left, _ := h.Left(s.port.Clock.Read()); left < 2*time.Second {
			t.Errorf("it counts although nobody waits: left %s", left)
		}
		s.end(h)
	})
}

func TestARenewalThatIsNotSentAnyMoreKeepsNoReleaseWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(&renews{}, clock.New())
		h := s.hold("n", 3*time.Second, term.Turn{Every: time.Second})
		due := s.port.Clock.Read().Earlier(-1100 * time.Millisecond)
		if !h.Look(due) {
			t.Fatal("no renewal is due")
		}
		e, _, _ := h.End(due, claim.Left{})
		if _, _, ok := h.Renewal(due); ok || e.Idle() != nil {
			t.Errorf("renewed: %t, and the release waits: %t", ok, e.Idle() != nil)
		}
		late := s.hold("late", 3*time.Second, term.Turn{Every: time.Second})
		_, life := late.Left(due)
		due = s.port.Clock.Read().Earlier(-life + brief/2)
		looked := late.Look(due)
		if _, _, ok := late.Renewal(due); !looked || ok {
			t.Errorf("half a millisecond before trust ends: due %t, renewed %t", looked, ok)
		}
		over := due.Earlier(-brief)
		for what, find := range map[string]func(h *Hold){
			"as a renewal is sent": func(h *Hold) { h.Renewal(over) },
			"by a check":           func(h *Hold) { h.Check(over) },
			"by its end":           func(h *Hold) { h.End(over, claim.Left{}) },
		} {
			h := s.hold(what, 3*time.Second, term.Turn{Every: time.Second})
			_, before, _ := s.seen(what)
			find(h)
			if _, lost, _ := s.seen(what); lost != before+1 {
				t.Errorf("trust has ended, which is found %s: %d lost", what, lost-before)
			}
		}
	})
}

func TestTheNextTurnIsStoppedByItsOwnMaxHold(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(&renews{}, clock.New())
		h := s.hold("n", 30*time.Second, term.Turn{Every: 10 * time.Second})
		w := &Want{Name: "n", Terms: &Terms{Wish: h.want.Wish, Turn: term.Turn{MaxHold: time.Second}}, Work: h.want.Work}
		if !h.Next(s.port.Clock.Read(), w) {
			t.Fatal("no turn")
		}
		time.Sleep(time.Second)
		synctest.Wait()
		if why, _, _ := s.seen("n"); why != term.MaxHold || h.Remaining(s.port.Clock.Now()) != 0 {
			t.Errorf("stopped by %d, and told to remain %s", why, h.Remaining(s.port.Clock.Now()))
		}
		s.end(h)
	})
}

func TestWhatIsGrantedAgainDuringTheReleaseIsCleanedUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := newSite(&renews{}, clock.New())
		for _, answer := range []driver.Kind{driver.Done, driver.Unknown} {
			h, now := s.hold("n", 3*time.Second, term.Turn{}), s.port.Clock.Read()
			h.Claim.Ask(call.Acquire, &h.want.Wish, 0)
			h.Claim.Answer(now.Awake(), driver.Meaning{})
			e, _, _ := h.End(now, claim.Left{})
			e.Send(now)
			h.Claim.Outcome(call.Acquire, driver.Meaning{Kind: driver.Done}) // after the release or before: nobody knows
			e.Answered(driver.Meaning{Kind: answer})
			if o := e.Over(now); !o.Cleanup.Once {
				t.Errorf("%d: %+v", answer, o)
			}
		}
	})
}

func TestWhatHasEndedIsNotConfirmed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &renews{does: func(_ context.Context, claims []driver.Claim) []error { return make([]error, len(claims)) }}
		s := newSite(d, clock.New())
		h := s.hold("name", time.Minute, term.Turn{})
		h.want.MinHold = time.Hour
		h.confirm(s.port)
		if left, _ := h.Left(s.port.Clock.Read()); left > time.Minute {
			t.Errorf("MinHold keeps the name, and not trust for %s", left)
		}
		s.end(h)
		h.confirm(s.port) // its goroutine ran late
		if n := d.commands.Load(); n != 1 {
			t.Errorf("%d renewals were sent", n)
		}
	})
}

func TestNobodyRenewsAGrantWithoutTheService(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := new(renews)
		s := newSite(d, clock.New())
		h := New("n", &Site{Watch: s.dog, Keeper: s}).Degraded(driver.Grant{Degraded: "its own"})
		s.begin(h, 3*time.Second, term.Turn{Every: time.Second})
		time.Sleep(time.Minute)
		if _, lost, _ := s.seen("n"); lost > 0 || d.commands.Load() > 0 {
			t.Errorf("%d lost, %d renewals", lost, d.commands.Load())
		}
		s.end(h)
	})
}

// Whoever had the turn before wanted a longer TTL.
func TestARenewalCutsNoTrustShort(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		d := &renews{does: func(_ context.Context, claims []driver.Claim) []error { return make([]error, len(claims)) }}
		s := newSite(d, clock.New())
		h := s.hold("name", time.Hour, term.Turn{})
		h.want.TTL = time.Minute
		before, _ := h.Left(s.port.Clock.Read())
		h.confirm(s.port)
		if left, _ := h.Left(s.port.Clock.Read()); left < before {
			t.Errorf("trusted for %s, and after a renewal for %s", before, left)
		}
		s.end(h)
	})
}
