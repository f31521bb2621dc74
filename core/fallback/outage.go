package fallback

import (
	"crypto/rand"
	"maps"
	"math"
	"sync"
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

// silence is since when a token has had no answer, and how many commands it has sent since.
type silence struct {
	began clock.Awake
	sends int
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

	silences map[string]silence // by token
	sweepAt  int                // how many there are when old ones are thrown out
}

// sent takes note of a command.
func (o *outage) sent(token string, now clock.Awake) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, known := o.silences[token]
	if !known {
		o.sweep(now)
		s.began = now
	}
	s.sends++
	o.silences[token] = s
}

// sweep forgets tokens that nobody asks with any more, and that core had nothing to clean up behind.
func (o *outage) sweep(now clock.Awake) {
	if o.silences == nil {
		o.silences, o.sweepAt = make(map[string]silence), minSweep
	}
	if len(o.silences) >= o.sweepAt {
		maps.DeleteFunc(o.silences, func(_ string, s silence) bool { return now.Sub(s.began) > time.Minute })
		o.sweepAt = max(minSweep, 2*len(o.silences))
	}
}

// silent says for how long a token has had no answer, and how many commands it has sent since.
func (o *outage) silent(token string, now clock.Awake) (took time.Duration, sends int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	s, known := o.silences[token]
	if !known { // it had an answer to an earlier look, or was released meanwhile
		return 0, 0
	}
	return now.Sub(s.began), s.sends
}

// heard says that a token has had an answer, or needs none any more.
func (o *outage) heard(token string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.silences, token)
}

// proved takes note of a silence that took so long. answers is how many there had been before it: if there are more by now, it is
// no outage. It takes nothing from a proof of more that still stands.
func (o *outage) proved(now clock.Awake, took time.Duration, answers int64, because error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(now, took, answers, because)
}

// probeEnded ends a probe, and is proved if it had no answer: in one step, or who comes in between would find no outage and pay for it.
func (o *outage) probeEnded(now clock.Awake, took time.Duration, answers int64, because error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.probing = false
	if m := driver.Explain(because); m.Nobody && !m.Answered() {
		o.note(now, took, answers, because)
	}
}

// note is proved. The caller holds the mutex.
func (o *outage) note(now clock.Awake, took time.Duration, answers int64, because error) {
	if o.because != nil && o.answers == answers && o.took > took && (o.probing || now.Sub(o.at) < lasts) {
		return
	}
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
		took := now.Sub(began)
		if !slow(err) {
			took = math.MaxInt64
		}
		d.outage.probeEnded(now, took, answers, err)
	})
}
