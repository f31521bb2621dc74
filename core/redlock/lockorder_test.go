package redlock_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/memlock"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// A call that core has left behind may open a ballot that another call is ending.
func TestCallsOfOneTokenDoNotWaitForEachOtherForEver(t *testing.T) {
	t.Parallel()
	store := redlock.New([]driver.Driver{memlock.New(), memlock.New(), memlock.New()})
	over := make(chan struct{})
	go func() {
		defer close(over)
		for i := range 3000 {
			claim := driver.Claim{Name: "name", Token: fmt.Sprint("token-", i), TTL: time.Minute}
			var calls sync.WaitGroup
			for range 2 {
				calls.Go(func() { _, _ = store.Acquire(t.Context(), claim) })
				calls.Go(func() { _ = store.Release(t.Context(), claim) })
			}
			calls.Wait()
			_ = store.Release(t.Context(), claim)
		}
	}()
	select {
	case <-over:
	case <-time.After(time.Minute):
		t.Fatal("nothing goes on")
	}
	ok(t, store.Close(t.Context()))
}
