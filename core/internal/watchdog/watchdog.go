// Package watchdog looks at everything that is held when it is due, and has it renewed, many in one command.
//
// It has one timer and no goroutine of its own. What runs when the timer fires does no I/O, takes no mutex that is
// held across I/O, and calls no user code. So nothing can keep a context from ending in time.
package watchdog

import (
	"context"
	"math"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/tasks"
)

// Watched is what the watchdog looks at: one grant. Its methods are called without the watchdog's mutex, except Entry.
type Watched interface {
	// Entry is the part of it that belongs to the watchdog.
	Entry() *Entry
	// Look does what is due at now, and says whether to renew. From then on a renewal is under way. It
	// calls Set.
	Look(now clock.Reading) (renew bool)
	// Renewal is the claim of that renewal, and how long it may take. It is not ok if it is not to be sent any more.
	Renewal(now clock.Reading) (c driver.Claim, patience time.Duration, ok bool)
	// Renewed takes the answer to it. It calls Set.
	Renewed(c driver.Claim, asked, now clock.Reading, err error)
	// Fails is how many of its renewals in a row had no answer.
	Fails() int
}

// Entry is the part of a Watched that belongs to the watchdog.
type Entry struct {
	index   int32  // in its slot of the wheel; -1 if it is in none
	slot    uint16 // of the wheel
	watched bool
}

// lookEvery is the longest time between two looks at the clocks while anything is held. Timers stand still while
// a machine is suspended, so a context may go on for this long after the machine resumes.
const lookEvery = 250 * time.Millisecond

// Dog is the watchdog.
type Dog[W Watched] struct {
	port    *call.Port
	renewer renewer[W]
	held    *tasks.Group // what is watched; during a tick some of them are not in the wheel

	mu      sync.Mutex // protects the fields below, and all entries
	wheel   *wheel[W]
	timer   *time.Timer
	wakeAt  clock.Awake   // when the timer fires; clock.Never if it is not set
	rest    *sync.Cond    // told as a tick ends
	ticking int           // how many ticks are under way; what they look at is not in the wheel
	seen    clock.Reading // the clocks at the last tick
	left    bool          // nothing is watched any more
}

// New returns a watchdog that renews through p.
func New[W Watched](p *call.Port) *Dog[W] {
	d := &Dog[W]{port: p, held: tasks.New(), wheel: newWheel[W](), seen: p.Clock.Read(), wakeAt: clock.Never}
	d.rest = sync.NewCond(&d.mu)
	d.renewer.port, d.timer = p, time.AfterFunc(math.MaxInt64, d.tick)
	d.timer.Stop()
	return d
}

// Watch begins to watch w. Set follows.
func (d *Dog[W]) Watch(w W) {
	d.mu.Lock()
	defer d.mu.Unlock()
	*w.Entry() = Entry{watched: true, index: -1}
	d.held.Enter()
}

// Set has w looked at when it is due, or up to early before that if others are due then.
func (d *Dog[W]) Set(w W, at clock.Awake, early time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !w.Entry().watched {
		return
	}
	d.wheel.set(w, at, early)
	d.arm(at)
}

// Leave ends the watch over w.
func (d *Dog[W]) Leave(w W) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := w.Entry(); e.watched {
		e.watched = false
		d.wheel.drop(w)
		d.held.Leave()
	}
}

// Count says how many are watched.
func (d *Dog[W]) Count() int { return d.held.Count() }

// Wait waits until nothing is watched, or until ctx ends.
func (d *Dog[W]) Wait(ctx context.Context) error { return d.held.Wait(ctx) }

// arm makes the timer fire at the given time, if it is not set to an earlier one. The caller holds the mutex.
func (d *Dog[W]) arm(at clock.Awake) {
	if at >= d.wakeAt {
		return
	}
	awake := d.port.Clock.Now()
	d.wakeAt = min(at, awake.Add(lookEvery))
	d.timer.Reset(d.wakeAt.Sub(awake))
}

// tick does what is due.
func (d *Dog[W]) tick() {
	now := d.port.Clock.Look()
	d.mu.Lock()
	if d.left {
		d.mu.Unlock()
		return
	}
	d.ticking++
	d.wakeAt = clock.Never
	// If the clocks have moved against each other since the last tick, because the machine slept or somebody set the wall clock,
	// everything is due.
	due := d.wheel.due(now.Awake(), now.PartedSince(d.seen))
	d.seen = now
	d.arm(d.wheel.first())
	d.mu.Unlock()

	renew := due[:0]
	for _, w := range due {
		if w.Look(now) {
			renew = append(renew, w)
		}
	}
	d.renewer.add(renew)

	d.mu.Lock()
	defer d.mu.Unlock()
	d.ticking--
	d.rest.Broadcast()
}

// All returns what is watched, but the few that are being looked at just now. It holds the mutex for no longer than a copy takes.
func (d *Dog[W]) All() []W {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wheel.all(d.held.Count())
}

// AllAtRest is All without an exception: it waits until nothing is being looked at.
func (d *Dog[W]) AllAtRest() []W {
	d.mu.Lock()
	defer d.mu.Unlock()
	for d.ticking > 0 {
		d.rest.Wait()
	}
	return d.wheel.all(d.held.Count())
}

// Abandon stops watching. It says how many are left to their TTL.
func (d *Dog[W]) Abandon() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left = true
	return d.held.Count()
}
