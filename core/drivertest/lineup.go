package drivertest

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// lineUpFor is how long a case gives a place to reach the queue if that cannot be seen, over connections that
// have to be opened. All places of a case reach it within one driver.PlaceLife.
func (e *env) lineUpFor() time.Duration {
	const opening = 20 // at most, to open two slow connections one after the other, and to use them
	return 250*time.Millisecond + e.lag(opening)
}

// lineUp puts c at the end of the queue.
func (e *env) lineUp(q queuer, c driver.Claim) {
	e.Helper()
	wait := func(ctx context.Context) error { return q.Wait(ctx, c) }
	seen, err := e.standing(c.Place, wait)
	if err == nil { // it has heard of something before, late
		seen, err = e.standing(c.Place, wait)
	}
	if err == nil || !seen && !errors.Is(err, context.Canceled) {
		e.Fatalf("lining up behind others: %v", err)
	}
}

// leftOffer leaves an offer of c, and listens no more.
func (e *env) leftOffer(o offerer, c driver.Claim, number uint64) {
	e.Helper()
	granted := false
	seen, err := e.standing(c.Place, func(ctx context.Context) (err error) {
		_, granted, err = o.Offer(ctx, withOffer(c, number))
		return err
	})
	if granted || err == nil || !seen && !errors.Is(err, context.Canceled) {
		e.Fatalf("an offer behind a holder: granted %v, %v", granted, err)
	}
}

// offered is what an Offer will return.
type offered func(granted bool, what string) driver.Grant

// offer has c offered, on a goroutine of its own. It returns once c is in the queue.
func (e *env) offer(o offerer, c driver.Claim, number uint64) offered {
	e.Helper()
	var (
		g       driver.Grant
		granted bool
		err     error
		over    = make(chan struct{})
		before  = e.queueLength()
	)
	go func() {
		defer close(over)
		g, granted, err = o.Offer(e.Context(), withOffer(c, number))
	}()
	e.longer(before, e.patience(c.Place), over)
	return func(want bool, what string) driver.Grant {
		e.Helper()
		<-over
		if want && !granted && err == nil && e.harness.uneven { // the message came before it could be heard
			g, err = o.Acquire(e.Context(), c)
			granted = err == nil
		}
		if err != nil || granted != want {
			e.Fatalf("%s: an offer came to %+v, granted %v, %v", what, g, granted, err)
		}
		return g
	}
}

// acquire begins an acquire by a process that is not in the queue yet. It returns once it is.
func (e *env) acquire(locks *core.Locker) *acquire {
	before := e.queueLength()
	c := e.acquireNow(locks)
	e.longer(before, e.patience(token()), c.over)
	return c
}

// standing runs a call that puts a place in the queue and waits there. It ends the call once the place can be seen in
// the queue. If it is not seen, the call alone can tell whether the place stands there.
func (e *env) standing(place string, call func(ctx context.Context) error) (seen bool, err error) {
	ctx, cancel := context.WithCancel(e.Context())
	defer cancel()
	over, before := make(chan struct{}), e.queueLength()
	go func() {
		defer close(over)
		err = call(ctx)
	}()
	seen = e.longer(before, e.patience(place), over)
	cancel()
	<-over
	return seen, err
}

// patience is how long a place may take to be seen in the queue. One that may stand there already makes it no longer.
func (e *env) patience(place string) time.Duration {
	if e.places[place] {
		return e.lineUpFor()
	}
	e.places[place] = true
	return 4 * e.lineUpFor()
}

// longer returns once the queue is longer than before, and says whether that was seen: not if a call is over first, or
// after a bound.
func (e *env) longer(before int, bound time.Duration, over <-chan struct{}) bool {
	if before < 0 {
		bound = e.lineUpFor()
	}
	for began := time.Now(); time.Since(began) < bound; {
		if before >= 0 && e.queueLength() > before {
			return true
		}
		select {
		case <-over:
			return false
		case <-time.After(e.ttl / 100):
		}
	}
	return false
}

// queueLength is how many places are in the queue, or less than 0 if that cannot be seen, or need not: in virtual time
// it takes no time to wait.
func (e *env) queueLength() int {
	i, ok := e.probe.(inspector)
	if !ok || e.virtual {
		return -1
	}
	return len(e.look(i).Line)
}
