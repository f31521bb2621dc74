//go:build linux

package weather

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// herd has many ask for a name whose contexts end together, at any instant: by a deadline, or by
// hand. Or it has a few do so.
func (w *worker) herd(random *rand.Rand) *turn {
	name, size := herdName, 1+random.IntN(3)
	if random.IntN(2) == 0 {
		name = ownHerd(w.ID)
	}
	if random.IntN(2) == 0 {
		size = 20 + random.IntN(31)
	}
	patience := time.Duration(200+random.IntN(200)) * time.Microsecond << random.IntN(12) // 0.8 s at most
	end := now() + int64(patience)
	var byHand context.Context
	if random.IntN(2) == 0 {
		var cancel context.CancelFunc
		byHand, cancel = context.WithCancel(context.Background())
		defer cancel()
		defer time.AfterFunc(patience, cancel).Stop()
	}
	var all sync.WaitGroup
	for range size {
		t := w.member(byHand, random, name, end)
		all.Go(func() { w.turn(t) })
	}
	all.Wait()
	w.pause(time.Duration(random.IntN(300)) * time.Millisecond)
	return nil
}

// member is one of a herd: its context ends at an instant, or, if there is one, by hand.
func (w *worker) member(byHand context.Context, random *rand.Rand, name string, end int64) *turn {
	t := w.plan(random, 0, name)
	t.try, t.patience, t.caller = false, time.Duration(end-now()), byHand
	t.opts = []core.Option{core.WithTTL(life(name))}
	return t
}
