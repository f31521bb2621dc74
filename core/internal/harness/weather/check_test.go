//go:build linux

package weather

import "testing"

func TestOfSeveralNamesOnlyOneMayHaveBeenLost(t *testing.T) {
	t.Parallel()
	for id, red := range map[string]string{"several/" + manyNames[0]: "", "single": "linearizable"} {
		var s story
		s.lease(Event{ID: id, Worker: "w1.1", Name: manyNames[0], Fence: 1}, ms(10), ms(20), ms(30))
		s[len(s)-1].Class = "lost"
		s.lease(Event{ID: "next", Worker: "w2.1", Name: manyNames[0], Fence: 2}, ms(40), ms(50), ms(60))
		if found := reddened(newEvidence(One, s, nil)); found != red {
			t.Errorf("%s: red: %q; want %q", id, found, red)
		}
	}
}
