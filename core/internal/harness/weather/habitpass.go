//go:build linux

package weather

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// handoffLife is for how long a detached name is kept for who has the hand-off.
const handoffLife = 300 * time.Millisecond

// give takes a name, and leaves it to another process.
func (w *worker) give(random *rand.Rand) *turn {
	t := w.plan(random, 4, passedName)
	if random.IntN(4) > 0 {
		w.passOn(random, t)
	}
	return t
}

// take comes for a name by a hand-off, and leaves it to the next one now and then.
func (w *worker) take(random *rand.Rand) *turn {
	l, ok := w.letter()
	if !ok {
		return nil
	}
	handoff, err := core.ParseHandoff(l.Handoff)
	if err != nil {
		panic(err) // it is what Encode has written
	}
	t := w.plan(random, 4, passedName)
	t.handoff, t.by = l.From, handoff
	if random.IntN(4) == 0 {
		w.passOn(random, t)
	}
	return t
}

// passOn has a turn end with Detach. One comes for the name, or two at a time, or nobody; and now and
// then not before the hand-off's time is over.
func (w *worker) passOn(random *rand.Rand, t *turn) {
	l := letter{From: t.id, Copies: [...]int{0, 1, 1, 1, 1, 2, 2, 2}[random.IntN(8)]}
	if random.IntN(3) == 0 {
		l.After = time.Duration(random.IntN(int(2 * handoffLife)))
	}
	t.gone = false // Detach has nothing to do with a ctx that has ended
	if random.IntN(8) == 0 {
		t.end = w.handBack
		return
	}
	t.end = func(x Lease, t *turn, last int64) {
		if handoff, ok := w.detach(x, t, last); ok {
			l.Handoff = handoff.Encode()
			w.send(l)
		}
	}
}

// detach ends a lease. If that fails it is over all the same, and nobody has its hand-off.
func (w *worker) detach(x Lease, t *turn, last int64) (handoff core.Handoff, ok bool) {
	own := x.(single)
	err := w.finish(t, Event{Last: last, Keep: int64(handoffLife)}, func(ctx context.Context) (err error) {
		handoff, err = own.Detach(ctx, handoffLife)
		return err
	})
	if err != nil {
		return handoff, false
	}
	at := now()
	if own.Err() == nil || own.Context().Err() == nil { // no use of it is right any more
		w.note(t, Event{Kind: Believed, Last: at, Until: at})
	}
	return handoff, true
}

var errUnsent = errors.New("no letter today")

// handBack hands a name over by a letter that cannot be sent: it comes free.
func (w *worker) handBack(x Lease, t *turn, last int64) {
	_ = w.finish(t, Event{Last: last}, func(ctx context.Context) error { // it is noted
		ctx, cancel := context.WithTimeout(ctx, TTL/3) // for calling it back, too
		defer cancel()
		err := x.(single).HandOff(ctx, handoffLife, func(context.Context, core.Handoff) error { return errUnsent })
		if errors.Is(err, errUnsent) {
			return nil
		}
		return err
	})
}
