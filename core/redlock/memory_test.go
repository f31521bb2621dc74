package redlock_test

import (
	"context"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// A release is done when a quorum has freed the name, so the node that answers last still has the vote then. Nobody may ask for
// the name again, nor use it.
func TestNamesThatAreUsedOnceTakeNoMemory(t *testing.T) {
	t.Parallel()
	overNodes(t, 3, func(t *testing.T, m *nodeSet) {
		p := m.process()
		p.links[2].Delay(0, time.Millisecond)
		x := acquire(t, p.locks, "kept")
		for i := range 3 * redlock.MinPrune {
			c := driver.Claim{Name: fmt.Sprint("name:", i), Token: "token", TTL: ttl}
			ok(t, acquires(t, p, c))
			if i%2 == 0 { // else it is lost, and never released
				ok(t, p.store.Release(t.Context(), c))
			}
			time.Sleep(100 * time.Millisecond)
		}
		ok(t, x.Release(t.Context())) // which has been renewed
		if _, names := redlock.Behind(p.store); redlock.Votes(p.store)+names > redlock.MinPrune {
			t.Errorf("%d and %d names are remembered", redlock.Votes(p.store), names)
		}
	})
}

// Whoever campaigns may wait for months.
func TestAWaitTakesNoMoreMemoryTheLongerItLasts(t *testing.T) { //nolint:paralleltest // it looks at the heap
	overNodes(t, 3, func(t *testing.T, m *nodeSet) {
		p, q := m.process(), m.process()
		x := acquire(t, p.locks, "name")
		go func() { _ = q.locks.Campaign(t.Context(), "name", func(context.Context) error { return nil }) }()
		heap := func() int64 {
			runtime.GC()
			var m runtime.MemStats
			runtime.ReadMemStats(&m)
			return int64(m.HeapAlloc)
		}
		time.Sleep(time.Minute)
		before := heap()
		time.Sleep(3 * time.Hour)
		if more := heap() - before; more > 200_000 { // there are 10,800 looks in that time
			t.Errorf("%d bytes more", more)
		}
		ok(t, x.Release(t.Context()))
	})
}

// Each attempt asks of what earlier ones have left at the nodes. While a node says nothing, each leaves something there for a TTL.
func TestTriesBesideASilentNodeAreSoonForgotten(t *testing.T) {
	t.Parallel()
	overNodes(t, 3, func(t *testing.T, m *nodeSet) {
		p := m.process()
		m.squat(0, 1)
		p.links[2].All(lab.RequestLost)
		const tries = 1000
		for i := range tries {
			_, err := p.store.Acquire(short(t, 2*time.Second), driver.Claim{Name: "name", Token: fmt.Sprint(i), TTL: time.Hour})
			if driver.Explain(err).Kind != driver.HeldBy {
				t.Fatal(err)
			}
			time.Sleep(20 * time.Millisecond)
		}
		if votes, _ := redlock.Behind(p.store); votes > tries/4 {
			t.Errorf("%d are remembered", votes)
		}
	})
}
