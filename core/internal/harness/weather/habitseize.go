//go:build linux

package weather

import (
	"math/rand/v2"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// seized has a name that is renewed all the time, so that many a turn ends just after a renewal and
// another goroutine of the process has the next one of the same tenure.
func (w *worker) seized(random *rand.Rand) *turn {
	t := w.plan(random, 0, seizedName)
	t.hold = time.Duration(5+random.IntN(50)) * time.Millisecond
	t.opts = []core.Option{core.WithRenewEvery(10 * time.Millisecond)}
	return t
}
