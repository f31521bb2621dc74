package memlock

import (
	"testing"
	"testing/synctest"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/internal/ranked"
)

// A waiter that does not run for seconds, since its machine is stopped, may look again before it has read of a grant.
// Whoever frees the name then must not wait for it: it holds the mutex of all names.
func TestAGrantThatNobodyHasReadYetBlocksNobody(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { // where nobody can go on, the test fails
		s := New()
		holder, waiter := claim("holder"), claim("waiter")
		told := make(chan driver.Grant, 1)
		for range 2 {
			_, err := s.Acquire(t.Context(), holder)
			backendtest.OK(t, err)
			if _, _, err := s.look(ranked.Claim{Claim: waiter}, told, false); driver.Explain(err).Held == nil {
				t.Fatal(err)
			}
			backendtest.OK(t, s.Release(t.Context(), holder))
			if err := s.Renew(t.Context(), []driver.Claim{waiter})[0]; err != nil {
				t.Errorf("the waiter was not granted the name: %v", err)
			}
			s.Lose("name")
		}
	})
}
