package taskmw_test

import (
	"sync/atomic"
	"testing"
)

// exclusive notices when two runs overlap.
type exclusive struct {
	inside, runs atomic.Int32
}

// enter counts a run that ends when leave is called.
func (e *exclusive) enter(tb testing.TB) (leave func()) {
	tb.Helper()
	e.runs.Add(1)
	if n := e.inside.Add(1); n != 1 {
		tb.Errorf("%d runs at once", n)
	}
	return func() { e.inside.Add(-1) }
}
