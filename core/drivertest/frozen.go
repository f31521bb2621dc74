package drivertest

import (
	"errors"

	"github.com/holdfast-go/holdfast/core"
)

// frozenCases stop the process of a holder for longer than its TTL.
var frozenCases = []testCase{
	{name: "AFrozenHolderWakesUpWithoutItsLease", run: func(e *env) {
		if e.Holder == "" {
			e.lacks("the harness has no process to freeze")
		}
		h := e.startHolder()
		locks := e.locker(e.Driver())
		e.eventually("others hear of the holder", func() bool {
			_, err := locks.TryAcquire(e.Context(), "name")
			if err == nil {
				e.Fatal("two holders")
			}
			return errors.Is(err, core.ErrHeld)
		})
		h.freeze()
		y, err := locks.Acquire(e.Context(), "name", core.WithTTL(e.longTTL())) // once the other's is over
		e.noError(err)
		if y.Fence() != 0 && y.Fence() <= h.fence {
			e.Errorf("fence %d after %d", y.Fence(), h.fence)
		}
		h.thaw()
		if said := h.ask(); said != (waking{Lost: true, ContextOver: true, ReleaseLost: true}) {
			e.Errorf("the holder that was frozen: %+v", said)
		}
		e.noError(y.Release(e.Context())) // nor has it touched what is another's now
	}},
}
