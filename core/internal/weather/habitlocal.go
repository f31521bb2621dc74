//go:build linux

package weather

import (
	"math/rand/v2"
	"slices"
	"sync"

	"github.com/holdfast-go/holdfast/core"
)

var localOnly = []core.Option{core.OnUnavailable(core.LocalOnly)}

// local does work that is better done twice than not at all.
func (w *worker) local(random *rand.Rand) *turn {
	t := w.plan(random, 4, localName)
	t.opts = localOnly
	return t
}

// stale is local, with a ticket: mostly one that was used before or is too old, as where a task is
// delivered twice. Now and then a turn of it leaves another one behind.
func (w *worker) stale(random *rand.Rand) *turn {
	t := w.local(random)
	if old, ok := w.drawer.any(random); ok {
		t.ticket, t.opts = old.from, append(slices.Clip(t.opts), core.WithTicket(old.ticket))
	}
	if random.IntN(3) == 0 {
		t.gone = false // Detach has nothing to do with a ctx that has ended
		t.end = w.leave
	}
	return t
}

// leave detaches a name, and keeps the ticket. Of a degraded lease there is none.
func (w *worker) leave(x Lease, t *turn, last int64) {
	if t.mode == Degraded {
		w.release(x, t, last)
		return
	}
	if ticket, ok := w.detach(x, t, last); ok {
		w.drawer.put(stub{t.id, ticket})
	}
}

// stub is a ticket that a worker has kept, and the lease that it is of.
type stub struct {
	from   string
	ticket core.Ticket
}

// drawer is where a worker has the last of its tickets.
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
