//go:build linux

package weather

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"
)

func ms(n int64) int64 { return n * int64(time.Millisecond) }

// story is a history that is made up, a lease at a time.
type story []Event

// lease is trusted until it is released, if that is not 0.
func (s *story) lease(e Event, from, last, released int64) {
	e.Kind, e.At = Asked, from-1
	*s = append(*s, e)
	e.Kind, e.At, e.Class = Answered, from, "ok"
	*s = append(*s, e, Event{At: last, Kind: Believed, ID: e.ID, Last: last, Until: last + ms(500)})
	if released != 0 {
		*s = append(*s, Event{At: released - 1, Kind: Releasing, ID: e.ID, Last: last}, Event{At: released, Kind: Released, ID: e.ID, Class: "ok"})
	}
}

func TestTheLeasesOfANestStandAndFallTogether(t *testing.T) {
	t.Parallel()
	outer := Event{ID: "outer", Worker: "w1.1", Name: nestedName, Fence: 7}
	inner := Event{ID: "inner", Worker: "w1.1", Name: nestedName, Fence: 7, Mode: Inner, Inside: "outer"}
	other := Event{ID: "other", Worker: "w2.1", Name: nestedName, Fence: 8}
	cases := []struct {
		name string
		tell func(s *story)
		red  string
	}{
		{"one after the other", func(s *story) {
			s.lease(outer, ms(10), ms(50), ms(60))
			s.lease(inner, ms(20), ms(30), ms(40))
			s.lease(other, ms(61), ms(70), ms(80))
		}, ""},
		{"crossed", func(s *story) {
			s.lease(outer, ms(10), ms(25), ms(30))
			s.lease(inner, ms(20), ms(40), ms(50))
			s.lease(other, ms(51), ms(70), ms(80))
		}, ""},
		{"another one comes between", func(s *story) {
			s.lease(outer, ms(10), ms(25), ms(30))
			s.lease(inner, ms(20), ms(40), ms(50))
			s.lease(other, ms(35), ms(70), ms(80))
		}, "belief linearizable"},
		{"the inner one outlives a loss", func(s *story) {
			s.lease(outer, ms(10), ms(25), 0)
			*s = append(*s, Event{At: ms(30), Kind: Lapsed, ID: "outer"})
			s.lease(inner, ms(20), ms(40), ms(50))
		}, "belief"},
		{"both are lost", func(s *story) {
			s.lease(outer, ms(10), ms(25), 0)
			s.lease(inner, ms(20), ms(28), 0)
			*s = append(*s, Event{At: ms(30), Kind: Lapsed, ID: "outer"})
		}, ""},
		{"with another fence", func(s *story) {
			s.lease(outer, ms(10), ms(50), ms(60))
			other := inner
			other.Fence = 8
			s.lease(other, ms(20), ms(30), ms(40))
		}, "answers"},
		{"the name is refused to who has it", func(s *story) {
			s.lease(outer, ms(10), ms(50), ms(60))
			refused := inner
			refused.Kind, refused.At = Asked, ms(20)
			*s = append(*s, refused)
			refused.Kind, refused.Class = Answered, "held"
			*s = append(*s, refused)
		}, "answers"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var s story
			c.tell(&s)
			if red := reddened(newEvidence(One, s, nil)); red != c.red {
				t.Errorf("red: %q; want %q", red, c.red)
			}
		})
	}
}

func TestWhoHasAskedNobodyExcludesItsProcessOnly(t *testing.T) {
	t.Parallel()
	local := func(id, worker string, mode Mode, fence uint64) Event {
		return Event{ID: id, Worker: worker, Name: localName, Mode: mode, Fence: fence}
	}
	cases := []struct {
		name string
		b    Event
		red  string
		n    int
	}{
		{"in another process", local("b", "w2.1", Degraded, 0), "", 1},
		{"in this one", local("b", "w1.1", Degraded, 0), "belief", 0},
		{"in this one, a healthy one", local("b", "w1.1", Alone, 8), "belief", 0},
		{"in another process, a healthy one", local("b", "w2.1", Alone, 8), "", 1},
		{"a healthy one without a fence", local("b", "w2.1", Alone, 0), "answers linearizable", 1},
		{"one with a fence", local("b", "w2.1", Degraded, 8), "answers", 1},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			var s story
			s.lease(local("a", "w1.1", Degraded, 0), ms(10), ms(50), ms(60))
			s.lease(c.b, ms(20), ms(30), ms(40))
			v := newEvidence(One, s, nil)
			if red := reddened(v); red != c.red {
				t.Errorf("red: %q; want %q", red, c.red)
			}
			if n := v.Figures().Explained[string(Degraded)]; n != c.n {
				t.Errorf("%d overlaps with a degraded lease; want %d", n, c.n)
			}
		})
	}
	var s story
	s.lease(Event{ID: "a", Worker: "w1.1", Name: "a", Mode: Degraded}, ms(10), ms(50), ms(60))
	if red := reddened(newEvidence(One, s, nil)); red != "answers" {
		t.Errorf("one that has not asked for it: red: %q", red)
	}
}

// reddened are the checkers that are red, of those that look at leases.
func reddened(v *Evidence) string {
	slices.SortStableFunc(v.Events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
	found := v.Findings()
	for _, other := range []string{"liveness", "leaks", "bounded"} { // about what a story does not tell
		delete(found, other)
	}
	return strings.Join(Red(found), " ")
}
