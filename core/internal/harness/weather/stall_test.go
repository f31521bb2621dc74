//go:build linux

package weather

import (
	"testing"
	"time"
)

func TestOnlyWhatAStallExplainsMayBeLate(t *testing.T) {
	t.Parallel()
	ms := func(n int) int64 { return int64(n) * int64(time.Millisecond) }
	story := func(stalledUntil int) *Evidence {
		asked := Event{At: ms(1000), Kind: Asked, Worker: "w1.1", ID: "w1.1-1", Name: "a", Deadline: ms(1100)}
		answered := Event{At: ms(2000), Kind: Answered, Worker: "w1.1", ID: "w1.1-1", Name: "a", Class: "ended"}
		return &Evidence{
			Calls: []*Call{{Asked: asked, Answered: answered}},
			Events: []Event{
				asked, answered,
				{At: ms(stalledUntil), Kind: Stalled, Worker: "w1.1", Last: ms(1050)},
				{At: ms(3000), Kind: Stalled, Worker: "w2.1", Last: ms(0)}, // another's
			},
		}
	}
	if found := checkBounded(story(1950)); len(found) > 0 {
		t.Errorf("900 ms of a stall are 550 ms late: %v", found)
	}
	if found := checkBounded(story(1150)); len(found) != 1 {
		t.Errorf("100 ms of a stall are no reason to be 550 ms late: %v", found)
	}
}
