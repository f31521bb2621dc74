package claim

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/sweep"
	"github.com/holdfast-go/holdfast/core/internal/tasks"
)

// slow is a service that has one name. Each command arrives after a delay of its own, and its answer is lost
// if that is longer than its caller waits.
type slow struct {
	driver.Driver

	mu       sync.Mutex
	owner    string
	expires  time.Time
	releases int
	takes    int
	delay    func(op string) time.Duration
}

func (s *slow) Capabilities() driver.Capabilities { return driver.Capabilities{} }

func (s *slow) Acquire(_ context.Context, c driver.Claim) (driver.Grant, error) {
	time.Sleep(s.delay("acquire"))
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.owner != "" && s.owner != c.Token && time.Now().Before(s.expires) {
		return driver.Grant{}, &driver.Held{}
	}
	s.takes++
	s.owner, s.expires = c.Token, time.Now().Add(c.TTL)
	return driver.Grant{}, nil
}

func (s *slow) Release(_ context.Context, c driver.Claim) error {
	time.Sleep(s.delay("release"))
	s.mu.Lock()
	defer s.mu.Unlock()
	s.releases++
	if s.owner != c.Token {
		return driver.ErrNotOwner
	}
	s.owner = ""
	return nil
}

func (s *slow) seen() (owner string, takes, releases int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.owner, s.takes, s.releases
}

func TestWhatALateCommandTakesIsGivenBackSoon(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{400 * time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second} {
		synctest.Test(t, func(t *testing.T) {
			s := &slow{delay: func(op string) time.Duration {
				if op == "acquire" {
					return late
				}
				return time.Millisecond
			}}
			d := NewDesk(call.New(s, clock.New(), tasks.New()))
			c := d.New("n")
			r := d.Acquire(t.Context(), c, wish(30*time.Second), 0, d.Port.Clock.Read(), 300*time.Millisecond)
			if !r.Meaning().Open() || c.Hangs() {
				t.Fatalf("%s: %v", late, r.Err)
			}
			d.Clean(c, c.Drop(r.Now.Awake()))
			began := time.Now()
			time.Sleep(late + 10*time.Millisecond)
			if owner, takes, _ := s.seen(); owner != "" || takes == 0 {
				t.Errorf("%s: taken %d times, owned by %q", late, takes, owner)
			}
			_, _, given := s.seen()
			err := d.Port.Tasks.Wait(t.Context())
			if _, _, releases := s.seen(); err != nil || releases > 80 || releases > given+1 || len(d.firsts) > 0 {
				t.Errorf("%s: %v, %d releases in %s, %d until it was given back, %d under way", late, err, releases, time.Since(began), given, len(d.firsts))
			}
		})
	}
}

func TestWhileTooManyHangNothingMoreIsSent(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{delay: func(string) time.Duration { return time.Minute }}
		d := NewDesk(call.New(s, clock.New(), tasks.New()))
		c := d.New("n")
		send := func() { d.Acquire(t.Context(), c, wish(time.Second), 0, d.Port.Clock.Read(), time.Microsecond) }
		for range call.Hung {
			send()
		}
		if !d.Port.Crowded() || d.Port.Full() {
			t.Errorf("crowded %t, full %t", d.Port.Crowded(), d.Port.Full())
		}
		for range call.Hung - 1 {
			send()
		}
		for _, want := range []error{call.ErrNoAnswer, call.ErrHung} { // the last one that may, and the first that may not
			r := d.Wait(t.Context(), c, wish(time.Second), 0, 100*time.Millisecond, nil)
			if !errors.Is(r.Err, want) {
				t.Errorf("%v, not %v", r.Err, want)
			}
		}
		if err := d.Port.Tasks.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestFewCleanUpsHangAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var takes atomic.Int64 // a release
		takes.Store(int64(time.Second))
		s := &slow{delay: func(op string) time.Duration {
			if op == "release" {
				return time.Duration(takes.Load())
			}
			return time.Hour
		}}
		d := NewDesk(call.New(s, clock.New(), tasks.New()))
		var all []*Claim
		for range 100 {
			c := d.New("n")
			d.Acquire(t.Context(), c, wish(30*time.Second), 0, d.Port.Clock.Read(), time.Microsecond)
			all = append(all, c)
		}
		for _, c := range all {
			d.Clean(c, c.Drop(d.Port.Clock.Now()))
		}
		for _, row := range []struct {
			after time.Duration
			most  int32 // three times as many as may hang: some are sent before others are known to
		}{{first + time.Second/10, 3 * sweep.Many}, {time.Minute, 3 * sweep.Few}} { // all were silent before
			time.Sleep(row.after)
			if n := d.hangs.Load(); n == 0 || n > row.most {
				t.Errorf("%d hang, more than %d", n, row.most)
			}
			time.AfterFunc(30*time.Second, func() { takes.Store(int64(time.Hour)) })
		}
		if err := d.Port.Tasks.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestEachCleanUpBeginsAtOnceHoweverManyWereBefore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &slow{delay: func(string) time.Duration { return 0 }}
		d := NewDesk(call.New(s, clock.New(), tasks.New()))
		var c *Claim
		for want := range 2 * sweep.Many {
			c = d.New("n")
			c.Ask(call.Wait, wish(time.Second), 0)
			c.Answer(0, driver.Meaning{Kind: driver.HeldBy})
			d.Clean(c, c.Drop(0))
			synctest.Wait()
			if _, _, releases := s.seen(); releases != want+1 {
				t.Errorf("%d of %d have begun", releases, want+1)
			}
		}
		for d.enter() { // as many as there may be are under way
		}
		d.Clean(c, Cleanup{})
		err := d.Port.Tasks.Wait(t.Context())
		if _, _, releases := s.seen(); err != nil || releases > 2*sweep.Many {
			t.Errorf("%v, and %d releases, though each was answered", err, releases)
		}
	})
}

func TestACleanUpThatHangsIsNotSentOnceMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var sent atomic.Int32
		s := &slow{delay: func(op string) time.Duration {
			if op == "release" {
				sent.Add(1)
			}
			return time.Hour
		}}
		d := NewDesk(call.New(s, clock.New(), tasks.New()))
		c := d.New("n")
		d.Acquire(t.Context(), c, wish(30*time.Second), 0, d.Port.Clock.Read(), 300*time.Millisecond)
		k := newCleaner(c)
		for range 3 {
			k.clean(first)
		}
		if n := sent.Load(); n != 1 {
			t.Errorf("%d clean-ups", n)
		}
		if err := d.Port.Tasks.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// without is a driver that grants without the service, long after it was asked.
type without struct {
	driver.Driver

	takes    time.Duration
	outage   error
	released chan string
}

func (w *without) Capabilities() driver.Capabilities { return driver.Capabilities{Degrade: true} }

func (w *without) Acquire(context.Context, driver.Claim) (driver.Grant, error) {
	time.Sleep(w.takes)
	return driver.Grant{Degraded: "its own", Outage: w.outage}, nil
}

func (w *without) Release(_ context.Context, c driver.Claim) error {
	if c.Token == "its own" {
		w.released <- c.Token
	}
	return nil
}

func TestWhatIsGrantedLateWithoutTheServiceIsReleased(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := &without{takes: time.Minute, released: make(chan string, 9)}
		d := NewDesk(call.New(w, clock.New(), tasks.New()))
		c := d.New("n")
		r := d.Acquire(t.Context(), c, &Wish{TTL: time.Second, Degrade: true}, 0, d.Port.Clock.Read(), 300*time.Millisecond)
		d.Clean(c, c.Drop(r.Now.Awake()))
		if err := d.Port.Tasks.Wait(t.Context()); err != nil || len(w.released) == 0 {
			t.Errorf("%v, released %d times", err, len(w.released))
		}
	})
}

func TestTheServiceMayStillExecuteWhatItHasNotAnswered(t *testing.T) {
	t.Parallel()
	for outage, want := range map[error]Cleanup{
		driver.ErrNotSent:      {},
		driver.ErrCannotAnswer: {Once: true, For: time.Second},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := NewDesk(call.New(&without{outage: outage}, clock.New(), tasks.New()))
			c := d.New("n")
			r := d.Acquire(t.Context(), c, &Wish{TTL: time.Second, Degrade: true}, 0, d.Port.Clock.Read(), 300*time.Millisecond)
			x := c.Drop(r.Now.Awake())
			if x != want {
				t.Errorf("%v: %+v", outage, x)
			}
			d.Clean(c, x)
			d.Close()
			closed := time.Now()
			if err := d.Port.Tasks.Wait(t.Context()); err != nil || time.Since(closed) > 2*sweep.AtClose {
				t.Errorf("%v: %v, and it goes on for %s after Close", outage, err, time.Since(closed))
			}
		})
	}
}
