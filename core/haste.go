package core

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// A driver call on a goroutine of its own can be left behind when the caller's ctx is
// cancelled. That costs a wake-up or two, which on a busy machine is more than the call
// itself. So as long as the backend is quick, a call runs on its caller's goroutine, and
// a cancellation waits for the answer: for quickAnswer typically, for quickPatience at
// worst. Deadlines are kept in any case, since only a driver.Capabilities.Punctual backend
// is asked in this way.
const (
	quickAnswer   = 100 * time.Millisecond // what an answer may take in order to prove it
	quickFor      = time.Second            // how long a proof lasts
	quickPatience = 250 * time.Millisecond // then a command counts as unanswered
)

// latency knows whether the backend is quick.
type latency struct {
	until atomic.Int64 // on the clock of instants

	took  atomic.Int64 // by the quickest answer of late
	fresh atomic.Int64 // until when that is believed
}

// heard takes note of a command's answer, or of the lack of one.
func (h *latency) heard(asked, now clock.Reading, answered bool) {
	if !answered || now.Awake().Sub(asked.Awake()) > quickAnswer {
		h.until.Store(0)
		return
	}
	h.until.Store(int64(now.Awake().Add(quickFor)))
	if took := int64(now.Awake().Sub(asked.Awake())); took <= h.took.Load() || int64(now.Awake()) >= h.fresh.Load() {
		h.took.Store(took)
		h.fresh.Store(int64(now.Awake().Add(quickFor)))
	}
}

// lately is how long the quickest answer of the last second took, 0 if that is not known.
func (h *latency) lately(c *clock.Clock) time.Duration {
	if int64(c.Now()) >= h.fresh.Load() {
		return 0
	}
	return time.Duration(h.took.Load())
}

// inline says whether a driver call under ctx may run on the caller's own goroutine.
func (r *engine) inline(ctx context.Context) bool {
	if !r.can.Punctual {
		return false
	}
	if ctx.Done() == nil { // only the call's own deadline can end it
		return true
	}
	return int64(r.clock.Now()) < r.latency.until.Load()
}

// patience is how long to wait for the first answer to a command that may be sent again
// within bound.
func (r *engine) patience(ctx context.Context, bound time.Duration) time.Duration {
	if ctx.Done() != nil && r.inline(ctx) {
		return min(bound/2, quickPatience)
	}
	return bound / 2
}

// within returns a context for one driver call, which takes d at most, and what ends it. If callctx has
// made it, the call may run on the caller's goroutine.
func (r *engine) within(caller context.Context, d time.Duration) (ctx context.Context, end func()) {
	if r.inline(caller) {
		return r.calls.Get(caller, d)
	}
	return context.WithTimeout(caller, d)
}
