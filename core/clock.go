package core

import (
	"math"
	"sync/atomic"
	"time"
)

// never is later than everything.
const never time.Duration = math.MaxInt64

// instant is one reading of every clock that a lease is judged by.
type instant struct {
	awake time.Duration // monotonic, since the Locker was made; stands still in suspension
	slept time.Duration // how long the machine has been suspended since boot
	wall  time.Duration // the wall clock, since 1970
}

// since says how much time has passed since a, by whichever clock says most: the
// monotonic one, corrected by the time slept, or the wall clock, which somebody may have
// set. So a wrong clock can end a lease early and can not prolong one.
func (b instant) since(a instant) time.Duration {
	return max(b.awake-a.awake+b.slept-a.slept, b.wall-a.wall)
}

// up is how long the machine has been up, and suspended: for what must not end early, as
// somebody who sets the wall clock does not count.
func (b instant) up() time.Duration { return b.awake + b.slept }

// clockStep is how far the wall clock may move against the monotonic one before it is
// taken for a sign of suspension. Drift within it is covered by the drift allowance.
const clockStep = time.Millisecond

// clock reads instants.
type clock struct {
	base  time.Time                          // when awake was 0
	now   func() (awake, wall time.Duration) // one reading of both
	sleep func() time.Duration               // time slept since boot, never above the truth
	slept atomic.Int64                       // the largest reading of sleep
	ahead atomic.Int64                       // wall minus awake at that reading
}

func newClock() *clock {
	base := time.Now()
	c := &clock{base: base, sleep: suspended, now: func() (awake, wall time.Duration) {
		now := time.Now()
		return now.Sub(base), time.Duration(now.UnixNano())
	}}
	c.look()
	return c
}

// read is the cheap reading. Asking for the time slept costs two system calls, so it is
// asked only when the wall clock has moved against the monotonic one: a kernel that
// resumes sets both the wall clock and the boot clock forward by the time it has slept.
func (c *clock) read() instant {
	awake, wall := c.now()
	if moved := wall - awake - time.Duration(c.ahead.Load()); moved > clockStep || moved < -clockStep {
		return c.look()
	}
	return instant{awake, time.Duration(c.slept.Load()), wall}
}

// look is the full reading.
func (c *clock) look() instant {
	slept := int64(c.sleep())
	awake, wall := c.now()
	c.ahead.Store(int64(wall - awake))
	for seen := c.slept.Load(); ; seen = c.slept.Load() {
		if slept <= seen { // a reading falls short when its thread is preempted
			slept = seen
			break
		}
		if c.slept.CompareAndSwap(seen, slept) {
			break
		}
	}
	return instant{awake, time.Duration(slept), wall}
}

// time is the time at which awake has the given value.
func (c *clock) time(awake time.Duration) time.Time { return c.base.Add(awake) }
