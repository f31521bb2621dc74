package claim

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/internal/sweep"
	"github.com/holdfast-go/holdfast/core/internal/tasks"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// far is a desk whose service is behind a slow network.
type far struct {
	*Desk

	link    *lab.Net
	service *memlock.Store
}

// atDesk runs f in virtual time. Commands take so long until their delay is another one. In the end everything has to be over.
func atDesk(t *testing.T, delay time.Duration, f func(t *testing.T, d far)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		service := memlock.New()
		link := lab.New(service)
		link.Delay(delay, 0)
		d := far{NewDesk(call.New(link, clock.New(), tasks.New())), link, service}
		f(t, d)
		if err := d.Port.Tasks.Wait(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// ask asks for n for 30 s.
func (d far) ask(ctx context.Context, c *Claim, patience time.Duration) call.Reply {
	return d.Acquire(ctx, c, wish(30*time.Second), 0, d.Port.Clock.Read(), patience)
}

func TestWhatALateCommandTakesIsGivenBackSoon(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{400 * time.Millisecond, time.Second, 5 * time.Second, 20 * time.Second} {
		atDesk(t, late, func(t *testing.T, d far) {
			c := d.New("n")
			r := d.ask(t.Context(), c, 300*time.Millisecond)
			if !r.Meaning().Open() || c.Hangs() {
				t.Fatalf("%s: %v", late, r.Err)
			}
			d.link.Delay(time.Millisecond, 0)
			d.Clean(c, c.Drop(r.Now.Awake()))
			time.Sleep(late + 10*time.Millisecond)
			if x, err := d.service.Inspect(t.Context(), "n"); err != nil || x.Held {
				t.Errorf("%s: %+v, %v", late, x, err)
			}
			given := d.link.Calls(lab.OpRelease)
			err := d.Port.Tasks.Wait(t.Context())
			if n := d.link.Calls(lab.OpRelease); err != nil || n > 80 || n > given+1 || len(d.firsts) > 0 {
				t.Errorf("%s: %v, %d releases, %d until it was given back, %d under way", late, err, n, given, len(d.firsts))
			}
		})
	}
}

func TestWhileTooManyHangNothingMoreIsSent(t *testing.T) {
	t.Parallel()
	atDesk(t, time.Minute, func(t *testing.T, d far) {
		c := d.New("n")
		for range call.Hung {
			d.ask(t.Context(), c, time.Microsecond)
		}
		if !d.Port.Crowded() || d.Port.Full() {
			t.Errorf("crowded %t, full %t", d.Port.Crowded(), d.Port.Full())
		}
		for range call.Hung - 1 {
			d.ask(t.Context(), c, time.Microsecond)
		}
		for _, want := range []error{call.ErrNoAnswer, call.ErrHung} { // the last one that may, and the first that may not
			r := d.Wait(t.Context(), c, wish(time.Second), 0, 100*time.Millisecond, nil)
			if !errors.Is(r.Err, want) {
				t.Errorf("%v, not %v", r.Err, want)
			}
		}
		if n := d.link.Calls(lab.OpWait); n > 0 {
			t.Errorf("%d waits", n)
		}
	})
}

func TestFewCleanUpsHangAtOnce(t *testing.T) {
	t.Parallel()
	atDesk(t, time.Hour, func(t *testing.T, d far) {
		var all []*Claim
		for range 100 {
			c := d.New("n")
			d.ask(t.Context(), c, time.Microsecond)
			all = append(all, c)
		}
		d.link.Delay(time.Second, 0)
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
			time.AfterFunc(30*time.Second, func() { d.link.Delay(time.Hour, 0) })
		}
	})
}

func TestEachCleanUpBeginsAtOnceHoweverManyWereBefore(t *testing.T) {
	t.Parallel()
	atDesk(t, 0, func(t *testing.T, d far) {
		var c *Claim
		for want := range 2 * sweep.Many {
			c = d.New("n")
			c.Ask(call.Wait, wish(time.Second), 0)
			c.Answer(0, refused)
			d.Clean(c, c.Drop(0))
			synctest.Wait()
			if n := d.link.Calls(lab.OpRelease); n != want+1 {
				t.Errorf("%d of %d have begun", n, want+1)
			}
		}
		for d.enter() { // as many as there may be are under way
		}
		d.Clean(c, Cleanup{})
		err := d.Port.Tasks.Wait(t.Context())
		if n := d.link.Calls(lab.OpRelease); err != nil || n > 2*sweep.Many {
			t.Errorf("%v, and %d releases, though each was answered", err, n)
		}
	})
}

func TestACleanUpThatHangsIsNotSentOnceMore(t *testing.T) {
	t.Parallel()
	atDesk(t, time.Hour, func(t *testing.T, d far) {
		c := d.New("n")
		d.ask(t.Context(), c, 300*time.Millisecond)
		k := newCleaner(c)
		for range 3 {
			k.clean(first)
		}
		if n := d.link.Calls(lab.OpRelease); n != 1 {
			t.Errorf("%d clean-ups", n)
		}
	})
}

// without is a driver that grants without the service.
type without struct {
	driver.Driver

	takes    time.Duration
	outage   error
	released int
}

func (w *without) Capabilities() driver.Capabilities { return driver.Capabilities{Degrade: true} }

func (w *without) Acquire(context.Context, driver.Claim) (driver.Grant, error) {
	time.Sleep(w.takes)
	return driver.Grant{Degraded: "its own", Outage: w.outage}, nil
}

func (w *without) Release(_ context.Context, c driver.Claim) error {
	if c.Token == "its own" {
		w.released++
	}
	return nil
}

// The service may still execute what it has not answered. What is granted late, without it, is given back where it was granted.
func TestWhatIsDoneBehindAGrantWithoutTheService(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		without
		want Cleanup
		late bool
	}{
		"nothing was sent": {without{outage: driver.ErrNotSent}, Cleanup{}, false},
		"no answer":        {without{outage: driver.ErrCannotAnswer}, Cleanup{Once: true, For: time.Second}, false},
		"granted late":     {without{takes: time.Minute}, Cleanup{Once: true, For: time.Second}, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			d := NewDesk(call.New(&row.without, clock.New(), tasks.New()))
			c := d.New("n")
			r := d.Acquire(t.Context(), c, &Wish{TTL: time.Second, Degrade: true}, 0, d.Port.Clock.Read(), 300*time.Millisecond)
			x := c.Drop(r.Now.Awake())
			if x != row.want {
				t.Errorf("%s: %+v", what, x)
			}
			d.Clean(c, x)
			d.Close()
			closed := time.Now()
			err := d.Port.Tasks.Wait(t.Context())
			if took := time.Since(closed) - row.takes; err != nil || took > 2*sweep.AtClose || (row.released > 0) != row.late {
				t.Errorf("%s: %v, it goes on for %s after Close, and releases %d", what, err, took, row.released)
			}
			if c.Doubtful() != x.Once {
				t.Errorf("%s: the service may still execute it: %t", what, c.Doubtful())
			}
		})
	}
}
