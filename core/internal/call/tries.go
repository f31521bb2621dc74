package call

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// A command is sent at most maxSends times. firstPause is the pause after the first time; each further pause is four
// times as long.
const (
	maxSends   = 4
	firstPause = 2 * time.Millisecond
)

// Tries is how one command is sent again while its outcome is open, for at most bound in all. The first
// time it is given up after half of that, so that there is time for another one. The result is the last
// answer that said something: a silence after an error tells less than that error.
//
//	t := p.Tries(now, bound)
//	for within := t.First(ctx); within > 0; within = t.Next(ctx, &r) {
//		r = p.Send(ctx, …, within, …)
//	}
type Tries struct {
	port  *Port
	began clock.Awake
	bound time.Duration
	pause time.Duration
	sends int
	told  error
}

// Tries begins at now.
func (p *Port) Tries(now clock.Reading, bound time.Duration) Tries {
	return Tries{port: p, began: now.Awake(), bound: bound, pause: firstPause}
}

// First is how long to wait for the first answer.
func (t *Tries) First(ctx context.Context) time.Duration {
	t.sends = 1
	if t.inline(ctx, t.began) {
		return min(t.bound/2, quickPatience)
	}
	return t.bound / 2
}

// inline says whether a cancellation of ctx would wait for the answer.
func (t *Tries) inline(ctx context.Context, now clock.Awake) bool {
	return t.port.Can.Punctual && ctx.Done() != nil && t.port.isQuick(now)
}

// Next says how long to wait for the next answer, after a pause; 0 means not to send again. r is the outcome so far. In
// the end it is what an earlier answer has said, if the last one is silence; its Now is after the pause.
func (t *Tries) Next(ctx context.Context, r *Reply) time.Duration {
	m := r.Meaning()
	if !m.Nobody {
		t.told = r.Err
	} else if t.told != nil {
		r.Err = t.told
	}
	if !m.Again() || t.sends == maxSends {
		return 0
	}
	wait := t.pause - rand.N(t.pause/4) //nolint:gosec // G404: jitter is no secret
	left := t.bound - r.Now.Awake().Sub(t.began) - wait
	if left <= 0 || !Sleep(ctx, wait) {
		return 0
	}
	t.sends++
	t.pause *= 4
	r.Now = t.port.Clock.Read()
	if t.inline(ctx, r.Now.Awake()) {
		left = min(left, quickPatience)
	}
	return left
}

// Sleep waits for d, or less if ctx ends. It says whether it has waited for all of d.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
