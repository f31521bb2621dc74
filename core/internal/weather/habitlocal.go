//go:build linux

package weather

import (
	"math/rand/v2"

	"github.com/holdfast-go/holdfast/core"
)

var localOnly = []core.Option{core.OnUnavailable(core.LocalOnly)}

// local does work that is better done twice than not at all.
func (w *worker) local(random *rand.Rand) *turn {
	t := w.plan(random, 4, localName)
	t.opts = localOnly
	return t
}

// degradedOverlaps counts the pairs of leases, of two processes, that were trusted together
// while one of them had asked nobody.
func (v *Evidence) degradedOverlaps() (n int) {
	for _, holds := range v.byName() {
		for i, a := range holds {
			for _, b := range holds[i+1:] {
				degraded := a.Mode == Degraded || b.Mode == Degraded
				if degraded && a.Worker != b.Worker && b.Answered < a.Last && a.Answered < b.Last {
					n++
				}
			}
		}
	}
	return n
}
