package clock

import (
	"testing"
	"time"
)

// hands are the clocks of a machine, each to be moved alone.
type hands struct{ awake, slept, wall time.Duration }

func (h *hands) clock() *Clock {
	c := &Clock{
		now:   func() (Awake, time.Duration) { return Awake(h.awake), h.wall },
		sleep: func() time.Duration { return h.slept },
	}
	c.Look()
	return c
}

func TestTheClockThatSaysMostDecides(t *testing.T) {
	t.Parallel()
	for what, row := range map[string]struct {
		awake, slept, wall time.Duration // what passes by each
		want               time.Duration
	}{
		"nothing odd":                  {awake: 3 * time.Second, wall: 3 * time.Second, want: 3 * time.Second},
		"suspended":                    {awake: time.Second, slept: time.Minute, wall: 61 * time.Second, want: 61 * time.Second},
		"suspended, wall clock back":   {awake: time.Second, slept: time.Minute, wall: -time.Hour, want: 61 * time.Second},
		"suspended, no boot clock":     {awake: time.Second, wall: 61 * time.Second, want: 61 * time.Second},
		"wall clock an hour forward":   {awake: time.Second, wall: time.Hour, want: time.Hour},
		"wall clock an hour back":      {awake: time.Second, wall: -time.Hour, want: time.Second},
		"monotonic clock 1% too slow":  {awake: 99 * time.Second, wall: 100 * time.Second, want: 100 * time.Second},
		"wall clock slewed by the NTP": {awake: time.Second, wall: time.Second - 500*time.Microsecond, want: time.Second},
	} {
		h := &hands{wall: 1000 * time.Hour}
		c := h.clock()
		before := c.Read()
		h.awake += row.awake
		h.slept += row.slept
		h.wall += row.wall
		now := c.Read()
		if got := now.Since(before); got != row.want {
			t.Errorf("%s: %s, not %s", what, got, row.want)
		}
		if up := now.Up().Sub(before.Up()); up != row.awake+row.slept {
			t.Errorf("%s: up for %s", what, up)
		}
	}
}

func TestTheTimeSleptNeverShrinks(t *testing.T) {
	t.Parallel()
	h := &hands{slept: time.Hour}
	c := h.clock()
	h.slept = 0 // a reading that falls short
	if got := c.Look(); got.slept != time.Hour {
		t.Errorf("slept %s", got.slept)
	}
}

func TestReadingCostsNoSystemCallWhileTheClocksAgree(t *testing.T) {
	t.Parallel()
	h := &hands{wall: 1000 * time.Hour}
	c := h.clock()
	c.sleep = func() time.Duration { t.Error("asked"); return 0 }
	h.awake, h.wall = time.Hour, h.wall+time.Hour+step/2
	c.Read()
}

func TestTheTimeSleptIsReadable(t *testing.T) {
	t.Parallel()
	if d := suspended(); d < 0 || d > 100*365*24*time.Hour {
		t.Errorf("suspended for %s", d)
	}
}

func TestATimeOfSomebodyElseIsEarlyAndNeverLate(t *testing.T) {
	t.Parallel()
	h := &hands{wall: 1000 * time.Hour}
	c := h.clock()
	c.base = time.Now()
	before := c.Read()
	at := c.base.Add(2 * time.Second) // read by somebody else, before and after everything odd
	for what, passes := range map[string]hands{
		"nothing odd":         {awake: 3 * time.Second, wall: 3 * time.Second},
		"suspended":           {awake: 3 * time.Second, slept: time.Minute, wall: 63 * time.Second},
		"wall clock forward":  {awake: 3 * time.Second, wall: time.Hour},
		"wall clock set back": {awake: 3 * time.Second, wall: -time.Hour},
	} {
		was := *h
		h.awake, h.slept, h.wall = h.awake+passes.awake, h.slept+passes.slept, h.wall+passes.wall
		now, got := c.Read(), c.At(at, before)
		if since := now.Since(got); since < time.Second || since < now.Since(before)-2*time.Second {
			t.Errorf("%s: %s ago, and the reading before it %s", what, since, now.Since(before))
		}
		*h = was
		c.slept.Store(0)
		c.Look()
	}
	if early := c.At(c.base.Add(-time.Second), before); before.Since(early) != time.Second {
		t.Errorf("a time before the reading: %s", before.Since(early))
	}
}
