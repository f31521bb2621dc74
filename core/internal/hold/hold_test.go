package hold

import (
	"context"
	"errors"
	"strconv"
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

// renews says what a backend that only renews answers to all claims of a command.
type renews func(ctx context.Context, claims []driver.Claim) error

// site has holds of such a backend, and counts what becomes of them.
type site struct {
	driver.Driver

	renews renews
	port   *call.Port
	dog    *watchdog.Dog[*Hold]

	mu      sync.Mutex // protects the fields below
	stopped map[string]term.Loss
	lost    int
	early   bool // one was lost before its contexts had ended
}

// sited runs f in virtual time.
func sited(t *testing.T, c func() *clock.Clock, r renews, f func(t *testing.T, s *site)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s := &site{renews: r, stopped: map[string]term.Loss{}}
		s.port = call.New(s, c(), tasks.New())
		s.dog = watchdog.New[*Hold](s.port)
		f(t, s)
		s.dog.Abandon()
		if err := s.port.Tasks.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func (s *site) Capabilities() driver.Capabilities { return driver.Capabilities{Punctual: true} }

func (s *site) Renew(ctx context.Context, claims []driver.Claim) []error {
	err := s.renews(ctx, claims)
	errs := make([]error, len(claims))
	for i := range errs {
		errs[i] = err
	}
	return errs
}

func (s *site) Lost(h *Hold) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.lost++
	_, told := s.stopped[h.Want().Name]
	s.early = s.early || !told
}

func (*site) Renewed(*Hold, time.Duration, error) {}

// work is what is done under one hold of a site.
type work struct {
	site *site
	name string
}

func (w work) Values() context.Context { return nil }

func (w work) Stop(why term.Loss) {
	w.site.mu.Lock()
	defer w.site.mu.Unlock()
	w.site.stopped[w.name] = why
}

// hold is a hold that is renewed each third of ttl.
func (s *site) hold(name string, ttl time.Duration) *Hold {
	return s.begin(New(name, &Site{Watch: s.dog, Keeper: s}), ttl)
}

func (s *site) begin(h *Hold, ttl time.Duration) *Hold {
	now, name := s.port.Clock.Read(), h.Claim.Name
	terms := Terms{Wish: claim.Wish{TTL: ttl}, Turn: term.Turn{Every: ttl / 3}}
	h.Begin(call.Reply{Asked: now, Now: now}, ttl, &Want{Name: name, Terms: &terms, Work: work{s, name}})
	return h
}

func TestOneClaimCostsNobodyElseAnything(t *testing.T) {
	t.Parallel()
	poison := errors.New("no")
	for what, row := range map[string]struct {
		lost int
		does renews
	}{
		"claims that spoil their commands": {100, func(_ context.Context, claims []driver.Claim) error {
			for _, c := range claims {
				if strings.HasSuffix(c.Name, "7") {
					return poison
				}
			}
			return nil
		}},
		"a claim that makes its command hang": {1, func(ctx context.Context, claims []driver.Claim) error {
			for _, c := range claims {
				if c.Name == "7" {
					<-ctx.Done()
					return ctx.Err()
				}
			}
			return nil
		}},
	} {
		sited(t, clock.New, row.does, func(t *testing.T, s *site) {
			for i := range 1000 {
				s.hold(strconv.Itoa(i), 30*time.Second)
			}
			time.Sleep(2 * time.Minute)
			synctest.Wait()
			if why := s.stopped["7"]; s.lost != row.lost || why != term.Unreachable || s.early {
				t.Errorf("%s: %d lost, 7 by %d", what, s.lost, why)
			}
		})
	}
}

func TestAfterAnOutageThousandsAreRenewedInTime(t *testing.T) {
	t.Parallel()
	var out atomic.Bool
	sited(t, clock.New, func(ctx context.Context, _ []driver.Claim) error {
		if out.Load() {
			<-ctx.Done()
			return ctx.Err()
		}
		time.Sleep(100 * time.Millisecond)
		return nil
	}, func(t *testing.T, s *site) {
		for i := range 20_000 {
			s.hold(strconv.Itoa(i), 30*time.Second)
		}
		time.Sleep(10 * time.Second)
		out.Store(true)
		time.Sleep(25 * time.Second)
		out.Store(false)
		time.Sleep(25 * time.Second)
		synctest.Wait()
		if s.lost > 0 {
			t.Errorf("%d lost", s.lost)
		}
	})
}

func TestAfterASuspensionNoContextGoesOn(t *testing.T) {
	t.Parallel()
	var slept atomic.Int64
	passed := func() time.Duration { return time.Duration(slept.Load()) }
	sited(t, func() *clock.Clock { return clock.Skewed(passed, passed) }, nil, func(t *testing.T, s *site) {
		s.hold("n", time.Hour)
		time.Sleep(time.Second)
		slept.Store(int64(2 * time.Hour))
		time.Sleep(250 * time.Millisecond)
		synctest.Wait()
		if why := s.stopped["n"]; why != term.Expired {
			t.Error(why)
		}
	})
}

func TestARenewalThatIsNotSentAnyMoreKeepsNoReleaseWaiting(t *testing.T) {
	t.Parallel()
	sited(t, clock.New, nil, func(t *testing.T, s *site) {
		h := s.hold("n", 3*time.Second)
		due := s.port.Clock.Read().Earlier(-1100 * time.Millisecond)
		if !h.Look(due) {
			t.Fatal("no renewal is due")
		}
		e, _, _ := h.End(due, claim.Left{})
		if _, _, ok := h.Renewal(due); ok || e.Idle() != nil {
			t.Errorf("renewed: %t, and the release waits: %t", ok, e.Idle() != nil)
		}
		late := s.hold("late", 3*time.Second)
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
			h, before := s.hold(what, 3*time.Second), s.lost
			find(h)
			if s.lost != before+1 {
				t.Errorf("trust has ended, which is found %s: %d lost", what, s.lost-before)
			}
		}
	})
}

func TestWhatARenewalIsTrustedFor(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		had, wants, minHold time.Duration // the TTL of the turn before, and what this one wants
		trusted             time.Duration
	}{
		"no less than before it":               {had: time.Hour, wants: time.Minute, trusted: time.Hour},
		"MinHold keeps the name, and no trust": {had: time.Minute, wants: time.Minute, minHold: time.Hour, trusted: time.Minute},
	} {
		sent := 0
		sited(t, clock.New, func(context.Context, []driver.Claim) error { sent++; return nil }, func(t *testing.T, s *site) {
			h := s.hold("n", row.had)
			h.want.TTL, h.want.MinHold = row.wants, row.minHold
			h.confirm(s.port)
			if left, _ := h.Left(s.port.Clock.Read()); left < term.Trust(row.trusted) || left > row.trusted {
				t.Errorf("%s: trusted for %s", what, left)
			}
			h.End(s.port.Clock.Read(), claim.Left{})
			if h.confirm(s.port); sent != 1 { // its goroutine ran late
				t.Errorf("%s: %d renewals", what, sent)
			}
		})
	}
}

func TestWhatIsGrantedAgainDuringTheReleaseIsCleanedUp(t *testing.T) {
	t.Parallel()
	sited(t, clock.New, nil, func(t *testing.T, s *site) {
		for _, answer := range []driver.Kind{driver.Done, driver.Unknown} {
			h, now := s.hold("n", 3*time.Second), s.port.Clock.Read()
			h.Claim.Ask(call.Acquire, &h.want.Wish, 0)
			h.Claim.Answer(now.Awake(), driver.Meaning{})
			e, _, _ := h.End(now, claim.Left{})
			e.Send(now)
			h.Claim.Outcome(call.Acquire, driver.Meaning{Kind: driver.Done}) // after the release or before: nobody knows
			e.Answered(driver.Meaning{Kind: answer})
			if o, left := e.Over(now), h.Remaining(now.Awake()); !o.Cleanup.Once || left > 0 {
				t.Errorf("%d: %+v, and to remain for %s", answer, o, left)
			}
		}
	})
}

func TestNobodyRenewsAGrantWithoutTheService(t *testing.T) {
	t.Parallel()
	sent := 0
	sited(t, clock.New, func(context.Context, []driver.Claim) error { sent++; return nil }, func(t *testing.T, s *site) {
		s.begin(New("n", &Site{Watch: s.dog, Keeper: s}).Degraded(driver.Grant{Degraded: "its own"}), 3*time.Second)
		time.Sleep(time.Minute)
		synctest.Wait()
		if s.lost > 0 || sent > 0 {
			t.Errorf("%d lost, %d renewals", s.lost, sent)
		}
	})
}

func TestConfirmRenewsOnceForAllWhoAsk(t *testing.T) {
	t.Parallel()
	var sent atomic.Int32
	const takes = 100 * time.Millisecond
	sited(t, clock.New, func(context.Context, []driver.Claim) error { sent.Add(1); time.Sleep(takes); return nil }, func(t *testing.T, s *site) {
		h := s.hold("n", 3*time.Second)
		time.Sleep(time.Second / 2)
		began := time.Now()
		var askers sync.WaitGroup
		for range 9 {
			askers.Go(func() { h.Refresh(t.Context(), s.port, 2600*time.Millisecond) })
		}
		askers.Wait()
		if took := time.Since(began); sent.Load() != 1 || took != takes {
			t.Errorf("%d commands, and all are told after %s", sent.Load(), took)
		}
	})
}
