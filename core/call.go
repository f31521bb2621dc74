package core

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// latency knows whether the backend is quick. Its fields are atomic, so it needs no mutex.
type latency struct {
	until atomic.Int64 // until when the backend counts as quick, as clock.Awake

	took  atomic.Int64 // what the quickest recent answer took
	fresh atomic.Int64 // until when took is believed
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

// lately is how long the quickest answer of the last second took. It is 0 if that is not known.
func (h *latency) lately(c *clock.Clock) time.Duration {
	if int64(c.Now()) >= h.fresh.Load() {
		return 0
	}
	return time.Duration(h.took.Load())
}

// A driver call on a goroutine of its own can be left behind when the caller's ctx is cancelled.
// That costs one or two wake-ups of threads, and on a busy machine they cost more than the call
// itself. So as long as the backend is quick, a call runs on its caller's goroutine, and a
// cancellation waits for the answer: for quickAnswer typically, for quickPatience at worst.
// Deadlines are kept in either case, because only a driver.Capabilities.Punctual backend is asked
// in this way.
const (
	quickAnswer   = 100 * time.Millisecond // how long an answer may take to prove that the backend is quick
	quickFor      = time.Second            // how long such a proof lasts
	quickPatience = 250 * time.Millisecond // after which a command counts as unanswered
)

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

// patience is how long to wait for the first answer to a command that may be sent again within
// bound.
func (r *engine) patience(ctx context.Context, bound time.Duration) time.Duration {
	if ctx.Done() != nil && r.inline(ctx) {
		return min(bound/2, quickPatience)
	}
	return bound / 2
}

// within returns a context for one driver call, which takes d at most, and the function that ends
// it. If callctx has made the context, the call may run on the caller's goroutine.
func (r *engine) within(caller context.Context, d time.Duration) (ctx context.Context, end func()) {
	if r.inline(caller) {
		return r.calls.Get(caller, d)
	}
	return context.WithTimeout(caller, d)
}

// callApart makes one driver call on a goroutine of its own, and waits for its outcome until ctx
// ends. It is needed because nothing interrupts the reads of some clients, and each of our calls
// has a time limit. If ctx ends first, ok is false. Then late, unless it is nil, gets the outcome
// once it is known.
func callApart[T any](ctx context.Context, r *engine, call func(context.Context) T, late func(T)) (result T, ok bool) {
	answer := make(chan T, 1)
	var left atomic.Bool
	r.spawn(func() {
		answer <- call(ctx)
		// The caller first sets left and then looks a last time. So one of the two sees the
		// outcome, and only one.
		if left.Load() {
			select {
			case v := <-answer:
				if late != nil {
					late(v)
				}
			default:
			}
		}
	})
	select {
	case result = <-answer:
		return result, true
	case <-ctx.Done():
	}
	left.Store(true)
	select {
	case result = <-answer:
		return result, true
	default:
		return result, false
	}
}

// maxSends is how often one command is sent within one attempt. firstPause is the pause after the
// first send; each further pause is four times as long.
const (
	maxSends   = 4
	firstPause = 2 * time.Millisecond
)

// persist sends a command, and sends it again while again says so, for at most bound and at most
// maxSends times. The first send is given up after patience without an answer, so that there is
// time for another one. If the last send is not answered, the error is what an earlier one was told.
func (r *engine) persist(ctx context.Context, patience, bound time.Duration, again func(error) bool, send func(context.Context) error) error {
	began := time.Now()
	var told error
	for n, pause := 1, firstPause; ; n, pause = n+1, pause*4 {
		if n > 1 && ctx.Done() != nil && r.inline(ctx) { // as for the first, which may have had a goroutine of its own
			patience = min(patience, quickPatience)
		}
		sctx, cancel := r.within(ctx, patience)
		err := send(sctx)
		cancel()
		if !errors.Is(err, errNoAnswer) && !driver.CannotAnswer(err) {
			told = err
		} else if told != nil {
			err = told
		}
		wait := jitter(pause)
		patience = bound - time.Since(began) - wait
		if !again(err) || errors.Is(err, driver.ErrRefused) || n == maxSends || patience <= 0 || !sleep(ctx, wait) {
			return err
		}
	}
}

// outcomeOpen says whether err leaves open what the command did.
func outcomeOpen(err error) bool {
	if err == nil || errors.Is(err, driver.ErrNotSent) || errors.Is(err, driver.ErrNotOwner) || errors.Is(err, driver.ErrUnmarked) {
		return false
	}
	_, held := errors.AsType[*driver.Held](err)
	_, done := errors.AsType[*driver.Duplicate](err)
	return !held && !done
}

// failed says whether a release is worth sending again.
func failed(err error) bool {
	return err != nil && !errors.Is(err, driver.ErrNotOwner) && !errors.Is(err, driver.ErrUnmarked) && !errors.Is(err, errOver)
}

// lineOpen says, of the result of a Wait, whether the command that joins the backend's queue may
// still be under way.
func lineOpen(ctx context.Context, err error) bool {
	answered := err == nil || err == ctx.Err() //nolint:errorlint // driver.Queuer: as it is
	return !answered && !errors.Is(err, driver.ErrNotSent)
}

// sleep waits for d, or less if ctx ends. It says whether ctx still stands.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

// jitter returns a random duration between three quarters of d and d.
func jitter(d time.Duration) time.Duration {
	if d < 4 {
		return d
	}
	return d - rand.N(d/4) //nolint:gosec // G404: jitter is no secret
}

func waitFor(ctx context.Context, done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	case <-ctx.Done():
		return false
	}
}
