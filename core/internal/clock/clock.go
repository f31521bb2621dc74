// Package clock reads all the clocks of a machine that say how long a lease has lasted: the
// monotonic clock, the wall clock, and how long the machine was suspended.
//
// A point in time has a type for the clock that it was read from, so that the compiler keeps them
// apart: [Awake], [Up] and, for all of them, [Reading]. The time between two points is a
// time.Duration.
package clock

import (
	"math"
	"sync/atomic"
	"time"
)

// Awake is a point on the monotonic clock, counted from when the Clock was made. It stands still
// while the machine is suspended, as timers do.
type Awake time.Duration

// Never is later than every other point.
const Never Awake = math.MaxInt64

// Add returns the point that is d later.
func (a Awake) Add(d time.Duration) Awake { return a + Awake(d) }

// Sub returns the time from b to a.
func (a Awake) Sub(b Awake) time.Duration { return time.Duration(a - b) }

// Up is a point on the monotonic clock, corrected by the time suspended. Nobody can set it, so it
// is used for what must not end early.
type Up time.Duration

// Sub returns the time from b to a.
func (a Up) Sub(b Up) time.Duration { return time.Duration(a - b) }

// Reading is one reading of every clock that a lease is judged by.
type Reading struct {
	awake Awake
	slept time.Duration // how long the machine has been suspended since boot
	wall  time.Duration // the wall clock, since 1970
}

// Since says how much time has passed since a, by the clock that says most: the monotonic one,
// corrected by the time slept, or the wall clock, which somebody may have set. So a wrong clock can
// end a lease early, but cannot prolong one.
func (r Reading) Since(a Reading) time.Duration {
	return max(r.awake.Sub(a.awake)+r.slept-a.slept, r.wall-a.wall)
}

// Earlier returns the reading that is d earlier on all clocks.
func (r Reading) Earlier(d time.Duration) Reading {
	r.awake, r.wall = r.awake.Add(-d), r.wall-d
	return r
}

// Awake returns the point on the monotonic clock.
func (r Reading) Awake() Awake { return r.awake }

// Up returns the point on the monotonic clock, corrected by the time suspended.
func (r Reading) Up() Up { return Up(r.awake) + Up(r.slept) }

// PartedSince says whether the clocks have moved against each other since a. Then the machine was
// suspended, or somebody has set the wall clock.
func (r Reading) PartedSince(a Reading) bool {
	return r.Since(a)-r.awake.Sub(a.awake) > step
}

// step is how far the wall clock may move against the monotonic one before that counts as a sign of
// suspension. The drift allowance of a lease covers what is smaller.
const step = time.Millisecond

// Clock reads the clocks. It is safe for concurrent use.
type Clock struct {
	base  time.Time                                // when awake was 0
	now   func() (awake Awake, wall time.Duration) // one reading of both
	sleep func() time.Duration                     // time slept since boot; may be too small, never too large
	slept atomic.Int64                             // the largest reading of sleep
	ahead atomic.Int64                             // wall minus awake at that reading
}

// New returns a Clock of this machine.
func New() *Clock {
	return Skewed(func() time.Duration { return 0 }, suspended)
}

// Skewed returns a Clock for tests. Its wall clock is wrong by what wall returns, and its machine
// was suspended for what slept returns.
func Skewed(wall, slept func() time.Duration) *Clock {
	base := time.Now()
	return &Clock{base: base, sleep: slept, now: func() (Awake, time.Duration) {
		now := time.Now()
		return Awake(now.Sub(base)), time.Duration(now.UnixNano()) + wall()
	}}
}

// Read is the cheap reading. To ask for the time slept costs two system calls. So Read asks only if
// the wall clock has moved against the monotonic one: a kernel that resumes sets both the wall
// clock and the boot clock forward by the time it has slept.
func (c *Clock) Read() Reading {
	awake, wall := c.now()
	if moved := wall - time.Duration(awake) - time.Duration(c.ahead.Load()); moved > step || moved < -step {
		return c.Look()
	}
	return Reading{awake, time.Duration(c.slept.Load()), wall}
}

// Look is the full reading.
func (c *Clock) Look() Reading {
	slept := int64(c.sleep())
	awake, wall := c.now()
	c.ahead.Store(int64(wall) - int64(awake))
	for seen := c.slept.Load(); seen < slept; seen = c.slept.Load() {
		c.slept.CompareAndSwap(seen, slept)
	}
	return Reading{awake, time.Duration(c.slept.Load()), wall} // its own is too small if its thread was preempted
}

// Now reads the monotonic clock alone, in half the time that both take.
func (c *Clock) Now() Awake { return Awake(time.Since(c.base)) }

// Time is the time at which the monotonic clock reads a.
func (c *Clock) Time(a Awake) time.Time { return c.base.Add(time.Duration(a)) }

// At is the reading that belongs to t, which somebody has read from time.Now about when a was read. It
// counts what a timer counts: a suspension between the two, or a step of the wall clock, makes it early,
// never late.
func (c *Clock) At(t time.Time, a Reading) Reading {
	return a.Earlier(a.awake.Sub(Awake(t.Sub(c.base))))
}
