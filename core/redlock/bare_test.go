package redlock_test

import (
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
)

// A holder gets the name from a quorum, while the release of the last one is still on its way to another node. Any one node may
// forget it from then on, and nobody else has a quorum.
func TestAHolderIsSoonAtTheNodesThatHadNotHeardOfTheLastRelease(t *testing.T) {
	t.Parallel()
	for _, slow := range []time.Duration{0, 5 * time.Millisecond} { // the new holder's way to that node
		overNodes(t, 3, func(t *testing.T, m *nodeSet) {
			last, next, other := m.holder("last"), m.process(), m.process()
			last.links[2].Delay(9*time.Millisecond, 0)
			ok(t, last.store.Release(t.Context(), last.claim("last")))
			next.links[2].Delay(slow, 0)
			g, err := next.store.Acquire(t.Context(), next.claim("next"))
			ok(t, err)
			if g.TTL != ttl {
				t.Errorf("%+v", g)
			}
			time.Sleep(50 * time.Millisecond)
			m.stores[0].Lose("name")
			if _, err := other.store.Acquire(t.Context(), other.claim("other")); driver.Explain(err).Kind != driver.HeldBy {
				t.Errorf("with a delay of %s, another one is answered %v", slow, err)
			}
			ok(t, next.store.Release(t.Context(), next.claim("next")))
		})
	}
}
