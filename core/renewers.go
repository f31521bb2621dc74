package core

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

const (
	// maxBatch is how many tenures one renewal command carries.
	maxBatch = 128
	// maxRenewers is how many renewal commands are under way at once. Commands that have taken a
	// sixteenth of their time do not count. So there are 16 times as many at the very most.
	maxRenewers = 16
)

// renewers send the renewals that are due, many in one command, on goroutines that exist while
// there is something to send.
//
// A command takes all of its time if one of several nodes says nothing. The tenures that it carries
// for other nodes can wait for that; the tenures behind it in the queue cannot. So it is overtaken.
type renewers struct {
	engine *engine

	mu      sync.Mutex // protects the fields below
	due     []*tenure
	running int // goroutines that run and are not overtaken
}

// add has the given tenures renewed. It puts those next to each other that can share a command.
func (r *renewers) add(due []*tenure) {
	slices.SortStableFunc(due, func(a, b *tenure) int {
		return cmp.Or(cmp.Compare(a.failed.Load(), b.failed.Load()), cmp.Compare(a.cfg.renewTimeout(), b.cfg.renewTimeout()))
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.due = append(r.due, due...)
	r.start()
}

// start begins as many goroutines as the due tenures need. The caller holds the mutex.
func (r *renewers) start() {
	for r.running < maxRenewers && r.running*maxBatch < len(r.due) {
		r.running++
		r.engine.spawn(r.run)
	}
}

func (r *renewers) run() {
	for {
		batch := r.nextBatch()
		if batch == nil {
			return
		}
		r.engine.enter() // for overtake
		late := time.AfterFunc(batch[0].cfg.renewTimeout()/maxRenewers, r.overtake)
		r.renew(batch)
		if !late.Stop() {
			return
		}
		r.engine.leave()
	}
}

// overtake begins another goroutine in place of one whose command takes long. That one takes no
// further batch.
func (r *renewers) overtake() {
	defer r.engine.leave()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.running--
	r.start()
}

// nextBatch returns the next batch. A tenure whose last renewals failed shares a batch only with
// tenures of as many failures, and the batches get smaller with each failure. So what is wrong with
// one claim does not cost another one its lease.
func (r *renewers) nextBatch() []*tenure {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.due) == 0 {
		r.due = nil
		r.running--
		return nil
	}
	first := r.due[0]
	failures := first.failed.Load()
	size := max(1, maxBatch>>(2*min(failures, 8)))
	n := 1
	for n < len(r.due) && n < size && r.due[n].failed.Load() == failures &&
		r.due[n].cfg.renewTimeout() == first.cfg.renewTimeout() {
		n++
	}
	batch := r.due[:n:n]
	r.due = r.due[n:]
	return batch
}

// renew sends one batch and gives each tenure its answer.
func (r *renewers) renew(batch []*tenure) {
	asked := r.engine.clock.Read()
	bound := batch[0].cfg.renewTimeout()
	claims := make([]driver.Claim, 0, len(batch))
	sent := batch[:0]
	for _, t := range batch {
		claim, left := t.renewClaim(asked)
		if left == 0 { // the tenure is over, or being released, since it came due
			t.renewed(asked, asked, errNotAsked, false)
			continue
		}
		bound = min(bound, left)
		claims = append(claims, claim)
		sent = append(sent, t)
	}
	if len(sent) == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	answers := r.send(ctx, claims)
	now := r.engine.clock.Read()
	for i, t := range sent {
		err := errNoAnswer
		if i < len(answers) {
			err = answers[i]
		}
		r.engine.outage.heard(err)
		t.renewed(asked, now, err, false)
	}
}

func (r *renewers) send(ctx context.Context, claims []driver.Claim) []error {
	if r.engine.can.Punctual {
		return r.engine.driver.Renew(ctx, claims)
	}
	answers, _ := callApart(ctx, r.engine, func(ctx context.Context) []error { return r.engine.driver.Renew(ctx, claims) }, nil)
	return answers
}
