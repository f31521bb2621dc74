package core

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// TestTheFirstPostIsTheEarliest moves, drops and adds tenures at random and looks at the top.
func TestTheFirstPostIsTheEarliest(t *testing.T) {
	t.Parallel()
	var h schedule
	at := map[*tenure]clock.Awake{}
	tenures := make([]*tenure, 100)
	for i := range tenures {
		tenures[i] = &tenure{index: -1}
	}
	for range 20_000 {
		x := tenures[rand.N(len(tenures))]
		if rand.N(3) == 0 {
			h.drop(x)
			delete(at, x)
		} else {
			at[x] = clock.Awake(rand.N(time.Second))
			h.set(x, alarm{at: at[x]})
		}
		if len(h) != len(at) {
			t.Fatalf("%d schedule for %d tenures", len(h), len(at))
		}
		first := clock.Never
		for y, due := range at {
			first = min(first, due)
			if h[y.index].tenure != y || h[y.index].at != due {
				t.Fatal("a tenure is not where its index says")
			}
		}
		if len(h) > 0 && h[0].at != first {
			t.Fatalf("the first is at %d, and the earliest at %d", h[0].at, first)
		}
	}
}
