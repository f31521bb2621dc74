package driver

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"
)

// The pace of looks that nobody asks for: the first pause, and the longest one.
const (
	firstPoll = 25 * time.Millisecond
	lastPoll  = time.Second
)

// Poll is Wait for a backend that cannot wait. try is its Acquire, and leaves nothing in a queue. Poll calls it
// every 25 ms at first and every second later, or when the owner's TTL ends, each time for [Patience] at
// most. It tells c.Heard of each refusal, and returns as Wait does: at the end of ctx, and at once for
// every other outcome.
func Poll(ctx context.Context, c Claim, try func(context.Context, Claim) (Grant, error)) (Grant, error) {
	return Await(ctx, c, func(ctx context.Context) (Grant, <-chan struct{}, error) {
		g, err := try(ctx, c)
		return g, nil, err
	})
}

// Await is Wait for a backend that is told when its waiter should look again. look makes one look: it puts
// c.Token into the queue, or keeps its entry alive, and asks as Acquire does. Beside a *[Held] it returns what
// tells of the next look, by a value or by being closed. Await looks then, every [Recheck], and when the owner's
// TTL ends. Without such a channel it looks as often as [Poll] does.
//
// Each look has [Patience] at most. Await tells c.Heard of each refusal, and returns as Wait does.
func Await[T any](ctx context.Context, c Claim, look func(context.Context) (Grant, <-chan T, error)) (Grant, error) {
	for pace, queued := firstPoll, false; ; pace, queued = min(2*pace, lastPoll), true {
		asked := time.Now()
		bounded, cancel := context.WithTimeout(ctx, Patience(c.TTL))
		g, told, err := look(bounded)
		cancel()
		if err == nil && g.Asked.IsZero() {
			g.Asked = asked
		}
		held, ok := errors.AsType[*Held](err)
		switch {
		case !ok && queued && errors.Is(err, ErrNotSent): // but an earlier look was
			unknown := UnknownOutcome(err)
			if errors.Is(err, ErrRefused) {
				unknown = Refused(unknown)
			}
			return g, unknown
		case !ok:
			return g, err
		}
		c.Tell(held)
		pause := Recheck(c.TTL)
		if told == nil {
			pause = pace - rand.N(pace/4) //nolint:gosec // G404: jitter is no secret
		}
		if held.Remaining > 0 { // backends count in milliseconds
			pause = min(pause, held.Remaining+time.Millisecond)
		}
		if !listen(ctx, told, pause) {
			return Grant{}, held
		}
	}
}

// listen waits until it is told, for d at most, or less if ctx ends. It says whether ctx still stands. A client
// may take a ctx for ended at its deadline, before it is.
func listen[T any](ctx context.Context, told <-chan T, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-told:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	deadline, ok := ctx.Deadline()
	return ctx.Err() == nil && (!ok || time.Until(deadline) > 0)
}
