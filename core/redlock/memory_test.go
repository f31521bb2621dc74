package redlock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// A release is done when a quorum has freed the name, so the node that answers last still has the ballot then. Nobody may ask for
// the name again.
func TestNamesThatAreUsedOnceTakeNoMemory(t *testing.T) {
	t.Parallel()
	inMesh(t, 3, func(t *testing.T, m *mesh) {
		p := m.process()
		p.links[2].Delay(0, time.Millisecond)
		for i := range 3 * redlock.MinPrune {
			c := driver.Claim{Name: fmt.Sprint("name:", i), Token: "token", TTL: ttl}
			_, err := p.store.Acquire(t.Context(), c)
			ok(t, err)
			ok(t, p.store.Release(t.Context(), c))
			time.Sleep(10 * time.Millisecond)
		}
		if n := redlock.Ballots(p.store) + redlock.Behind(p.store); n > redlock.MinPrune {
			t.Errorf("%d are remembered", n)
		}
	})
}
