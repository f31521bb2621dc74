package driver

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// The pace of Poll: the first pause, and the longest one.
const (
	firstPoll = 25 * time.Millisecond
	lastPoll  = time.Second
)

// Poll is Wait for a backend that cannot wait. try is its Acquire, and leaves nothing in a queue. Poll calls it
// every 25 ms at first and every second later, or when the owner's TTL ends, each time for [Patience] at
// most. It tells c.Heard of each refusal, and returns as Wait does: at the end of ctx, and at once for
// every other outcome.
func Poll(ctx context.Context, c Claim, try func(context.Context, Claim) (Grant, error)) (Grant, error) {
	for pace := firstPoll; ; pace = min(2*pace, lastPoll) {
		asked := time.Now()
		bounded, cancel := context.WithTimeout(ctx, Patience(c.TTL))
		g, err := try(bounded, c)
		cancel()
		if err == nil && g.Asked.IsZero() {
			g.Asked = asked
		}
		held, ok := errors.AsType[*Held](err)
		if !ok {
			return g, err
		}
		c.Tell(held)
		pause := pace - rand.N(pace/4) //nolint:gosec // G404: jitter is no secret
		if held.Remaining > 0 {        // backends count in milliseconds
			pause = min(pause, held.Remaining+time.Millisecond)
		}
		if !sleep(ctx, pause) {
			return Grant{}, held
		}
	}
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
