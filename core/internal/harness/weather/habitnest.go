//go:build linux

package weather

import (
	"context"
	"math/rand/v2"
)

// nest takes a name that it has already, once or twice, each time under the lease before.
func (w *worker) nest(random *rand.Rand) *turn {
	t := w.plan(random, 4, nestedName)
	inside := t
	for range 1 + random.IntN(2) {
		outer, inner := inside, w.plan(random, 4, nestedName)
		crossed := random.IntN(4) == 0
		outer.end = func(x Lease, t *turn, last int64) { w.enter(x, t, last, inner, crossed) }
		inside = inner
	}
	return t
}

// enter takes the name of x again, and works on. The inner lease ends first, or, if they are crossed,
// the outer one.
func (w *worker) enter(x Lease, t *turn, last int64, inner *turn, crossed bool) {
	inner.outer, inner.mode, inner.inside = x, Inner, t.id
	if t.mode == Inner {
		inner.inside = t.inside
	}
	lapse := context.AfterFunc(x.Context(), func() { w.note(t, Event{Kind: Lapsed}) })
	release := func() {
		if at := now(); x.Err() == nil {
			last = at
		}
		lapse()
		w.release(x, t, last)
	}
	y := w.acquire(inner)
	if y == nil {
		release()
		return
	}
	within := w.hold(y, inner)
	if crossed {
		release()
	}
	w.over(y, inner, within)
	if !crossed {
		release()
	}
}

// joined says whether the lease is inside the one that it was asked under, or was refused
// although that stood: if it still does, it has since before.
func (t *turn) joined(x Lease, err error) bool {
	if t.outer.Err() == nil {
		return true
	}
	name := t.names[0]
	return err == nil && x.FenceOf(name) != 0 && x.FenceOf(name) == t.outer.FenceOf(name)
}
