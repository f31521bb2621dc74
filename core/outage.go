package core

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

const (
	// outageLasts is how long a call that was not answered speaks for those after it. Then
	// somebody has to ask again, and to wait for as long as that takes.
	outageLasts = time.Second
	// probePause is how often, at most, it is asked in the background meanwhile. So where there
	// is work at all, nobody has to wait, and the end of an outage is seen soon.
	probePause = 250 * time.Millisecond
)

// outage knows whether the backend could answer lately, for calls that go on without it. It has
// no goroutine and no timer: who comes by has a probe sent, one at a time.
type outage struct {
	on atomic.Bool // an answer would end something: spares those who hear one the mutex

	mu      sync.Mutex    // protects the fields below
	at      clock.Reading // of the last proof that it cannot answer
	because error
	probing bool
	probed  clock.Reading // when the last probe went out
}

// failed takes note of a call that was not answered.
func (o *outage) failed(now clock.Reading, because error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at, o.because = now, because
	o.on.Store(true)
}

// heard takes note of what a command came to: the first answer ends the outage.
func (o *outage) heard(err error) {
	if !o.on.Load() || outcomeOpen(err) || errors.Is(err, driver.ErrNotSent) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.on.Store(false)
}

// stands says why nobody has to ask now, nil if that is not known, and whether the caller is to
// send a probe. One that is under way speaks for those who come by until it is over.
func (o *outage) stands(now clock.Reading) (probe bool, because error) {
	if !o.on.Load() {
		return false, nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.on.Load() || !o.probing && now.Since(o.at) >= outageLasts {
		return false, nil
	}
	return o.due(now), o.because
}

// suspect says whether the caller, who has left before it was answered, is to send a probe.
func (o *outage) suspect(now clock.Reading) (probe bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Since(o.at) >= outageLasts { // a probe for a suspicion is no proof
		o.on.Store(false)
	}
	return o.due(now)
}

func (o *outage) due(now clock.Reading) bool {
	if o.probing || o.probed != (clock.Reading{}) && now.Since(o.probed) < probePause {
		return false
	}
	o.probing, o.probed = true, now
	return true
}

// answered takes note of what a probe came to. What is neither an answer nor a proof of an
// outage leaves it to the next call to ask.
func (o *outage) answered(now clock.Reading, err error) {
	o.heard(err)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.probing = false
	if errors.Is(err, errNoAnswer) || driver.CannotAnswer(err) {
		o.at, o.because = now, opaque(err)
		o.on.Store(true)
	}
}

// probe asks whether a token that nobody has owns a name: a question that changes nothing, and
// that every backend answers.
func (r *engine) probe(name string, bound time.Duration) {
	claim := driver.Claim{Name: name, Token: newSecret()}
	r.spawn(func() {
		ctx, cancel := context.WithTimeout(r.life, bound)
		defer cancel()
		answers, ok := callApart(ctx, r, func(ctx context.Context) []error {
			return r.driver.Renew(ctx, []driver.Claim{claim})
		}, nil)
		err := errNoAnswer
		if ok && len(answers) == 1 {
			err = answers[0]
		}
		r.outage.answered(r.clock.Read(), err)
	})
}
