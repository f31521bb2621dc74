package fallback

import (
	"crypto/rand"
	"sync"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

const (
	// lasts is how long a call that was not answered speaks for later calls. After that time somebody has to ask again, and to
	// wait for as long as that takes.
	lasts = time.Second
	// pause is the shortest time between two probes, which ask in the background meanwhile. So where there is work at all,
	// nobody has to wait, and the end of an outage is seen soon.
	pause = 250 * time.Millisecond
)

// patience is how long the service has to be silent before a call with c goes on without it. It is less than core's own, so
// that there is time to say so.
func patience(c driver.Claim) time.Duration { return driver.Patience(c.TTL) / 3 * 2 }

// silence is how long one call has had no answer.
type silence struct {
	began   clock.Awake
	last    atomic.Int64 // the last answer to a look of Wait, as clock.Awake
	need    time.Duration
	answers int64 // that the process had when it began
}

func (s *silence) took(now clock.Awake) time.Duration {
	return now.Sub(max(s.began, clock.Awake(s.last.Load())))
}

// heard returns a Claim.Heard that takes note, and tells the one of the caller.
func (s *silence) heard(c *clock.Clock, tell func(*driver.Held)) func(*driver.Held) {
	return func(h *driver.Held) {
		s.last.Store(int64(c.Now()))
		if tell != nil {
			tell(h)
		}
	}
}

// outage knows whether the service could answer lately. It has no goroutine and no timer: calls that come by send the
// probes, one at a time. The first answer to anybody ends it.
type outage struct {
	mu      sync.Mutex // protects the fields below
	at      clock.Awake
	took    time.Duration // how long somebody has waited in vain
	because error
	answers int64 // how many answers there had been by then
	probing bool
	probed  clock.Awake // when the last probe was sent
}

// proved takes note of a silence that took so long. answers is how many there had been before it: if there are more by now, it is
// no outage.
func (o *outage) proved(now clock.Awake, took time.Duration, answers int64, because error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.at, o.took, o.answers, o.because = now, took, answers, because
}

// stands says why a call with c need not ask now; nil if it has to. While a probe is under way, the outage stands for those that come by.
func (o *outage) stands(now clock.Awake, c driver.Claim, answers int64) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.because == nil || o.answers != answers || o.took < patience(c) || !o.probing && now.Sub(o.at) >= lasts {
		return nil
	}
	return o.because
}

// due says whether a probe is to be sent, and counts it as sent if so.
func (o *outage) due(now clock.Awake) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.probing || o.probed > 0 && now.Sub(o.probed) < pause {
		return false
	}
	if now.Sub(o.at) >= lasts { // a probe is no proof
		o.because = nil
	}
	o.probing, o.probed = true, now
	return true
}

// probe asks in the background, if it is time for that, whether a token that nobody has owns the name of c. The question changes nothing, and
// every backend answers it.
func (d *Driver) probe(c driver.Claim) {
	if !d.outage.due(d.port.Clock.Now()) {
		return
	}
	d.port.Tasks.Go(func() {
		began, answers := d.port.Clock.Now(), d.answers.Load()
		err := d.port.Renew([]driver.Claim{{Name: c.Name, Token: rand.Text()}}, driver.Patience(c.TTL))[0]
		now := d.port.Clock.Now()
		d.outage.mu.Lock()
		d.outage.probing = false
		d.outage.mu.Unlock()
		if m := driver.Explain(err); m.Nobody && !m.Answered() {
			d.outage.proved(now, now.Sub(began), answers, err)
		}
	})
}
