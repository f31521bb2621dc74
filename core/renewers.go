package core

import (
	"cmp"
	"context"
	"errors"
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
	// maxClass is the class of those that have failed most often in a row.
	maxClass = 8
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
	running int               // goroutines that run and are not overtaken
	grown   [maxClass + 1]int // by class: how large a batch may be, since the one before was answered as a whole
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
	for most := r.batches(); r.running < most; {
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
		class := batch[0].class()
		r.grow(class, r.renew(batch))
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

// nextBatch returns the next batch.
func (r *renewers) nextBatch() []*tenure {
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

// cut says how many of due, from the first on, go into one batch. A tenure whose last renewals failed shares a batch only
// with tenures of as many failures, and the batches get smaller with each failure. So what is wrong with one claim does
// not cost another one its lease. After an outage nothing is wrong with any of them: each batch that is answered doubles
// the next one. Otherwise thousands would go one by one, and many be too late. The caller holds the mutex.
func (r *renewers) cut(due []*tenure) int {
	first := due[0]
	class := first.class()
	size := max(1, maxBatch>>(2*class), r.grown[class])
	n := 1
	for n < len(due) && n < size && due[n].class() == class && due[n].cfg.renewTimeout() == first.cfg.renewTimeout() {
		n++
	}
	return n
}

// class is how often the tenure's renewals have failed in a row, as far as it matters.
func (t *tenure) class() int { return int(min(t.failed.Load(), maxClass)) }

// batches is into how many the due tenures are cut, as far as it matters. The caller holds the mutex.
func (r *renewers) batches() (n int) {
	for due := r.due; len(due) > 0 && n < maxRenewers; n++ {
		due = due[r.cut(due):]
	}
	return n
}

// grow takes note of a batch of a class: n tenures have an answer, or none counts since one of them has not.
func (r *renewers) grow(class, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.grown[class] = min(2*n, maxBatch)
}

// renew sends one batch and gives each tenure its answer. It returns how many there were, if each of them is one.
func (r *renewers) renew(batch []*tenure) (answered int) {
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
		return 0
	}
	ctx, cancel := context.WithTimeout(context.Background(), bound)
	defer cancel()
	answers := r.send(ctx, claims)
	now := r.engine.clock.Read()
	answered = len(sent)
	for i, t := range sent {
		err := errNoAnswer
		if i < len(answers) {
			err = answers[i]
		}
		if outcomeOpen(err) || errors.Is(err, driver.ErrNotSent) {
			answered = 0
		}
		r.engine.outage.heard(err)
		t.renewed(asked, now, err, false)
	}
	return answered
}

func (r *renewers) send(ctx context.Context, claims []driver.Claim) []error {
	if r.engine.can.Punctual {
		return r.engine.driver.Renew(ctx, claims)
	}
	answers, _ := callApart(ctx, r.engine, func(ctx context.Context) []error { return r.engine.driver.Renew(ctx, claims) }, nil)
	return answers
}
