package core

import (
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// lookEvery is the longest time between two looks at the clocks while anything is held. Timers
// stand still while a machine is suspended, so a context may go on for this long after the machine
// resumes.
const lookEvery = 250 * time.Millisecond

// watchdog watches over every tenure of a Locker. It ends the contexts of tenures whose time is
// over, and passes tenures that are due to the renewers.
//
// It has one timer and no goroutine of its own. What runs when the timer fires does no I/O, takes
// no mutex that is held across I/O, and calls no user code. So nothing can keep a context from
// ending in time.
type watchdog struct {
	engine   *engine
	renewers renewers
	seed     maphash.Seed // of jitter

	mu       sync.Mutex   // protects the fields below
	schedule schedule     // tenures by when the watchdog has to look at them
	kept     atomic.Int64 // how many tenures were added and not removed; during a tick some of them are not in schedule
	timer    *time.Timer
	wakeAt   clock.Awake   // when the timer fires; clock.Never if it is not set
	ticking  bool          // a tick is under way; it sets the timer when it ends
	seen     clock.Reading // the clocks at the last tick
	closed   bool          // no further tenure is accepted
	left     bool          // Close has given up waiting: nothing is watched any more
}

func newWatchdog(r *engine) *watchdog {
	k := &watchdog{engine: r, seen: r.clock.Read(), wakeAt: clock.Never, seed: maphash.MakeSeed()}
	k.renewers.engine = r
	return k
}

// How much earlier than a whole period renewals go, as a part of the period. The first renewals are
// spread because many leases may have been acquired at once. Later ones are spread so that
// processes do not fall into step.
const (
	firstSpread = 4 // up to a quarter of the period
	lastSpread  = 16
)

// jitter returns d, less up to 1/part of it. It is the same for everything that was asked for
// within one millisecond. So what is renewed together is due together again, in the order in which
// it lies in memory.
func (k *watchdog) jitter(asked clock.Reading, d, part time.Duration) time.Duration {
	share := maphash.Comparable(k.seed, asked.Awake()/clock.Awake(time.Millisecond)) >> 32
	return d - time.Duration(float64(d/part)*float64(share)/(1<<32))
}

// add begins to watch t, which nobody else knows yet. It refuses once the Locker is closed.
func (k *watchdog) add(t *tenure) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed {
		return false
	}
	t.kept = true
	k.kept.Add(1)
	k.plan(t, t.due())
	return true
}

// set has t looked at when it is due. The caller holds t's mutex.
func (k *watchdog) set(t *tenure) {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.plan(t, t.due())
}

// plan puts t into the schedule. The caller holds the mutex.
func (k *watchdog) plan(t *tenure, due alarm) {
	if !t.kept || k.left || due.at == clock.Never {
		return
	}
	k.schedule.set(t, due)
	if !k.ticking {
		k.arm(due.at)
	}
}

// arm makes the timer fire at the given time, if it is not set to an earlier one. The caller holds
// the mutex.
func (k *watchdog) arm(at clock.Awake) {
	if at >= k.wakeAt {
		return
	}
	awake := k.engine.clock.Now()
	k.wakeAt = min(at, awake.Add(lookEvery))
	d := max(0, k.wakeAt.Sub(awake))
	if k.timer == nil {
		k.timer = time.AfterFunc(d, k.tick)
	} else {
		k.timer.Reset(d)
	}
}

// remove ends the watch over t.
func (k *watchdog) remove(t *tenure) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !t.kept {
		return
	}
	t.kept = false
	k.schedule.drop(t)
	if k.kept.Add(-1) == 0 && (k.closed || k.engine.drained()) {
		k.engine.stirred()
	}
}

// tick does what is due.
func (k *watchdog) tick() {
	now := k.engine.clock.Look()
	k.mu.Lock()
	if k.ticking { // the timer was set again as it fired
		k.mu.Unlock()
		return
	}
	k.ticking = true
	k.wakeAt = clock.Never
	due := k.popDue(now)
	k.mu.Unlock()

	var renew []*tenure
	for _, t := range due {
		if t.look(now) {
			renew = append(renew, t)
		}
		if k.engine.closed() { // Close has missed t if it looked between popDue and look
			t.endContexts(ErrClosed)
		}
	}
	k.renewers.add(renew)

	k.mu.Lock()
	defer k.mu.Unlock()
	k.ticking = false
	if len(k.schedule) > 0 && !k.left {
		k.arm(k.schedule[0].at)
	}
}

// popDue takes the tenures that are due out of the schedule. If the clocks have moved against each
// other since the last tick, because the machine slept or somebody set the wall clock, those are
// all tenures. The caller holds the mutex.
func (k *watchdog) popDue(now clock.Reading) []*tenure {
	parted := now.PartedSince(k.seen)
	k.seen = now
	var due []*tenure
	for len(k.schedule) > 0 {
		first := k.schedule[0]
		if !parted && first.at.Sub(now.Awake()) > first.slack {
			break
		}
		k.schedule.drop(first.tenure)
		due = append(due, first.tenure)
	}
	return due
}

// close refuses new tenures, and ends the contexts of all leases.
func (k *watchdog) close() {
	k.mu.Lock()
	k.closed = true
	kept := make([]*tenure, 0, len(k.schedule))
	for _, w := range k.schedule {
		kept = append(kept, w.tenure)
	}
	k.mu.Unlock()
	for _, t := range kept {
		t.endContexts(ErrClosed)
	}
}

// remaining says how many tenures are watched.
func (k *watchdog) remaining() int { return int(k.kept.Load()) }

// abandon stops watching. It says how many tenures are left to their TTL.
func (k *watchdog) abandon() int {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.left = true
	if k.timer != nil {
		k.timer.Stop()
	}
	return int(k.kept.Load())
}

// hasLeft says whether Close has given up waiting.
func (k *watchdog) hasLeft() bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.left
}

// alarm is when the watchdog has to look at a tenure, and how much earlier it may.
type alarm struct {
	at    clock.Awake
	slack time.Duration
}

// schedule is a heap of tenures, with the one to look at first on top. The watchdog's mutex
// protects it. It holds the times itself, has four children per entry, and moves each entry only
// once: touching tenures that are spread over the memory costs more than the rest of a renewal.
type schedule []scheduled

type scheduled struct {
	alarm
	tenure *tenure // its index is the place in the schedule; -1 for none
}

const width = 4

// set puts t in its place, whether t was in the schedule before or not.
func (h *schedule) set(t *tenure, p alarm) {
	if t.index < 0 {
		t.index = int32(len(*h)) //nolint:gosec // G115: so many leases fit in no memory
		*h = append(*h, scheduled{})
	}
	h.sift(int(t.index), scheduled{p, t})
}

// drop takes t out, if it is there.
func (h *schedule) drop(t *tenure) {
	if t.index < 0 {
		return
	}
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = scheduled{}
	*h = old[:len(old)-1]
	if last.tenure != t {
		h.sift(int(t.index), last)
	}
	t.index = -1
}

// sift puts p where it belongs; place i is free.
func (h schedule) sift(i int, p scheduled) {
	for i > 0 && p.at < h[(i-1)/width].at {
		h.put(i, h[(i-1)/width])
		i = (i - 1) / width
	}
	for c := width*i + 1; c < len(h); c = width*i + 1 {
		first := c
		for d := c + 1; d < min(c+width, len(h)); d++ {
			if h[d].at < h[first].at {
				first = d
			}
		}
		if p.at <= h[first].at {
			break
		}
		h.put(i, h[first])
		i = first
	}
	h.put(i, p)
}

func (h schedule) put(i int, p scheduled) {
	h[i] = p
	p.tenure.index = int32(i) //nolint:gosec // G115: as above
}
