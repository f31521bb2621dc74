//go:build linux

package weather

import "testing"

// A lease may write for the first time when a later one has written already.
func TestALateFirstWriteIsStaleAndThoseAfterItAreNot(t *testing.T) {
	t.Parallel()
	wrote := func(lease string, fence uint64, fenced bool) Event {
		return Event{Kind: Wrote, Name: "a", ID: lease, Fence: fence, Fenced: fenced}
	}
	for name, fences := range map[string][2]uint64{"by fence": {7, 8}, "by the time of the grant": {0, 0}} {
		v := &Evidence{
			Holds: []*Hold{{ID: "early", Fence: fences[0], Answered: 1}, {ID: "later", Fence: fences[1], Answered: 2}},
			Events: []Event{
				wrote("later", fences[1], true),
				wrote("early", fences[0], false),
				wrote("later", fences[1], true),
			},
		}
		if naive, fenced := v.StaleWrites(); naive != 1 || fenced != 0 {
			t.Errorf("%s: %d stale writes, %d of them into the fenced store", name, naive, fenced)
		}
	}
}
