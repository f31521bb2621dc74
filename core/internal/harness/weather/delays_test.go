//go:build linux

package weather

import (
	"slices"
	"testing"
)

func TestDelaysAreCountedFromWhatHasCausedThem(t *testing.T) {
	t.Parallel()
	v := &Evidence{
		Events: []Event{
			{At: ms(300), Kind: Faulted, Fault: "kill", Worker: "w1"},
			{At: ms(400), Kind: Healed, Fault: "kill", Worker: "w1"},
			{At: ms(900), Kind: Healed, Fault: "memory"},
			{At: ms(2000), Kind: Healed, ID: "all"},
		},
		Holds: []*Hold{
			{Name: "a", Worker: "w2.0", Answered: ms(1), Last: ms(100), Releasing: ms(100), ReleasedAt: ms(101), Outcome: "ok"},
			{Name: "a", Worker: "w1.0", Asked: ms(50), Answered: ms(105), Last: ms(290)},     // waits, and is killed
			{Name: "a", Worker: "w12.0", Asked: ms(200), Answered: ms(1290), Last: ms(1400)}, // after its TTL
			{Name: "b", Worker: "w1.1", Asked: ms(900), Answered: ms(950), Last: ms(951)},    // w1's next life
			{Name: "b", Worker: "w1.1", Asked: ms(1000), Answered: ms(1001), Last: ms(1002)}, // nobody has waited
			{Name: "c", Worker: "w12.0", Asked: ms(350), Answered: ms(450), Last: ms(451)},   // of another worker
			{Name: "c", Worker: "w3.0", Asked: ms(2100), Answered: ms(2101), Last: ms(2102)}, // when all is over
		},
	}
	if got := v.handOvers(); !slices.Equal(got, []int64{ms(5)}) {
		t.Errorf("hand-overs %v", got)
	}
	if got := v.takeOvers(); !slices.Equal(got, []int64{ms(990)}) {
		t.Errorf("take-overs %v", got)
	}
	got := v.recoveries()
	if len(got) != 2 || !slices.Equal(got["kill"], []int64{ms(550)}) || !slices.Equal(got["memory"], []int64{ms(50)}) {
		t.Errorf("recoveries %v", got)
	}
}
