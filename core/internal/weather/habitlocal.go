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
