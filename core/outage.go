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
	// outageLasts is how long a call that was not answered speaks for later calls. After that time
	// somebody has to ask again, and to wait for as long as that takes.
	outageLasts = time.Second
	// probePause is the shortest time between two probes, which ask in the background meanwhile. So
	// where there is work at all, nobody has to wait, and the end of an outage is seen soon.
	probePause = 250 * time.Millisecond
)

// outage knows whether the backend could answer lately, for calls that go on without it. It has no
// goroutine and no timer: calls that come by send the probes, one at a time.
type outage struct {
	on atomic.Bool // an answer would end an outage; without one, calls that hear an answer need no mutex

	mu      sync.Mutex    // protects the fields below
	at      clock.Reading // of the last proof that the backend cannot answer
	because error
	probing bool
	probed  clock.Reading // when the last probe was sent
}

// failed takes note of a call that was not answered.
func (o *outage) failed(now clock.Reading, because error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at, o.because = now, because
	o.on.Store(true)
}

// heard takes note of a command's outcome. The first answer ends the outage.
func (o *outage) heard(err error) {
	if !o.on.Load() || outcomeOpen(err) || errors.Is(err, driver.ErrNotSent) {
		return
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.on.Store(false)
}

// stands says why nobody has to ask now; nil if somebody has to. It also says whether the caller
// has to send a probe. While a probe is under way, the outage stands for all calls that come by.
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

// suspect says whether the caller, which has left before there was an answer, has to send a probe.
func (o *outage) suspect(now clock.Reading) (probe bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if now.Since(o.at) >= outageLasts { // a probe that a suspicion has sent is no proof of an outage
		o.on.Store(false)
	}
	return o.due(now)
}

// due says whether a probe is due, and counts it as sent if it is. The caller holds the mutex.
func (o *outage) due(now clock.Reading) bool {
	if o.probing || o.probed != (clock.Reading{}) && now.Since(o.probed) < probePause {
		return false
	}
	o.probing, o.probed = true, now
	return true
}

// answered takes note of a probe's outcome. If it is neither an answer nor a proof of an outage,
// the next call has to ask.
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

// probe asks whether a token that nobody has owns a name. The question changes nothing, and every
// backend answers it.
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
