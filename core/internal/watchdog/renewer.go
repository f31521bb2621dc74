package watchdog

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
)

const (
	// most is how many claims one command carries.
	most = driver.MaxRenewals
	// atOnce is how many commands are under way at once. Those that have taken a sixteenth of their time do not
	// count. So there are sixteen times as many at the very most.
	atOnce = 16
)

// renewer sends the renewals that are due, on goroutines that exist while there is something to send.
//
// A command takes all of its time if one of several nodes says nothing. The claims that it carries for other nodes
// can wait for that; those behind it cannot. So it is overtaken.
//
// Claims whose last renewal had no answer go apart from the others, and in smaller commands: what is wrong with one of them
// shall not cost another one its lease. After an outage nothing is wrong with any of them, and thousands must be in time. So
// a command that is answered doubles the next one for claims that have failed as often; one that is not begins anew.
type renewer[W Watched] struct {
	port *call.Port

	mu      sync.Mutex // protects the fields below
	due     []overdue[W]
	running int // goroutines that run and are not overtaken
	grown   int // how large a command may be for claims that have failed
	of      int // so often
}

// overdue is an entry to renew, and how many of its renewals in a row had no answer: to ask it again and again would cost more than to send.
type overdue[W Watched] struct {
	of    W
	fails int
}

// add has the given entries renewed. It sorts them so that those that can share a command are next to each other.
func (r *renewer[W]) add(due []W) {
	all := make([]overdue[W], len(due))
	for i, w := range due {
		all[i] = overdue[W]{w, w.Fails()}
	}
	slices.SortStableFunc(all, func(a, b overdue[W]) int { return cmp.Compare(a.fails, b.fails) })
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due = append(r.due, all...)
	r.start()
}

// start begins as many goroutines as the due entries need. The caller holds the mutex.
func (r *renewer[W]) start() {
	need := 0
	for due := r.due; len(due) > 0 && need < atOnce; need++ {
		due = due[r.cut(due):]
	}
	for r.running < need {
		r.running++
		r.port.Tasks.Go(r.run)
	}
}

// cut says how many of due, from the first on, go into one command. The caller holds the mutex.
func (r *renewer[W]) cut(due []overdue[W]) int {
	n, fails := 1, due[0].fails
	size := max(1, most>>min(2*fails, 8))
	if fails == r.of {
		size = max(size, r.grown)
	}
	for n < len(due) && n < size && due[n].fails == fails {
		n++
	}
	return n
}

func (r *renewer[W]) next() []overdue[W] {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.due) == 0 {
		r.due = nil
		r.running--
		return nil
	}
	n := r.cut(r.due)
	batch := r.due[:n:n]
	r.due = r.due[n:]
	return batch
}

func (r *renewer[W]) run() {
	for {
		batch := r.next()
		if batch == nil || r.renew(batch) {
			return
		}
	}
}

// overtake begins another goroutine in place of one whose command takes long. That one takes no further batch.
func (r *renewer[W]) overtake() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	r.start()
}

// renew sends one command, and gives each entry its answer. It says whether it was overtaken.
func (r *renewer[W]) renew(batch []overdue[W]) (overtaken bool) {
	asked := r.port.Clock.Read()
	claims := make([]driver.Claim, 0, len(batch))
	sent, bound := batch[:0], time.Duration(0)
	for _, e := range batch {
		c, patience, ok := e.of.Renewal(asked)
		if !ok { // it is over since it came due, and has said so
			continue
		}
		if len(sent) == 0 || patience < bound {
			bound = patience
		}
		claims, sent = append(claims, c), append(sent, e)
	}
	if len(sent) == 0 {
		return false
	}
	late := time.AfterFunc(bound/atOnce, r.overtake)
	errs := r.port.Renew(claims, bound)
	overtaken = !late.Stop()
	now, answered := r.port.Clock.Read(), true
	for i, e := range sent {
		answered = answered && driver.Explain(errs[i]).Answered()
		e.of.Renewed(claims[i], asked, now, errs[i])
	}
	r.grow(sent[0].fails, len(sent), answered)
	return overtaken
}

// grow takes note of a command for n claims that had failed so often.
func (r *renewer[W]) grow(fails, n int, answered bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch {
	case answered:
		r.of, r.grown = fails, min(2*n, most)
	case r.of == fails:
		r.grown = 0
	}
}
