//go:build linux

package weather

import (
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

var localOnly = []core.Option{core.OnUnavailable(core.LocalOnly)}

// local does work that is better done twice than not at all. It often takes long, so that an outage
// begins under a lease.
func (w *worker) local(random *rand.Rand) *turn {
	name := localName
	if random.IntN(3) > 0 {
		name = ownLocal(w.ID)
	}
	t := w.plan(random, 25, name)
	t.opts = localOnly
	return t
}

// stale is local, with a hand-off: mostly one that was used before or is too old, as where a task is
// delivered twice. Now and then a turn of it leaves another one behind. Mostly it does not wait: a
// call that stands in the queue when an outage begins comes to nobody's lease during it.
func (w *worker) stale(random *rand.Rand) *turn {
	w.pause(time.Duration(random.IntN(20)) * time.Millisecond)
	t := w.local(random)
	if old, ok := w.drawer.any(random); ok {
		t.names[0], t.handoff, t.by = old.handoff.Name(), old.from, old.handoff
		t.try = random.IntN(4) > 0
	}
	if random.IntN(3) == 0 {
		t.gone = false // Detach has nothing to do with a ctx that has ended
		t.end = w.leave
	}
	return t
}

// leave detaches a name, and keeps the hand-off. Of a degraded lease there is none.
func (w *worker) leave(x Lease, t *turn, last int64) {
	if t.mode == Degraded {
		w.release(x, t, last)
		return
	}
	if handoff, ok := w.detach(x, t, last); ok {
		w.drawer.put(stub{t.id, handoff})
	}
}

// stub is a hand-off that a worker has kept, and the lease that it is of.
type stub struct {
	from    string
	handoff core.Handoff
}

// drawer is where a worker has the last of its hand-offs.
type drawer struct {
	mu    sync.Mutex // protects stubs
	stubs []stub
}

func (d *drawer) put(s stub) {
	const few = 4
	d.mu.Lock()
	defer d.mu.Unlock()
	d.stubs = append(d.stubs, s)
	d.stubs = d.stubs[max(0, len(d.stubs)-few):]
}

func (d *drawer) any(random *rand.Rand) (s stub, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.stubs) == 0 {
		return s, false
	}
	return d.stubs[random.IntN(len(d.stubs))], true
}
