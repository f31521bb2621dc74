package backendtest

import (
	"strings"
	"testing"
	"time"
)

// held is a span from one second to another.
func heldFor(limit int, fence uint64, from, to int) span {
	begin := time.Unix(0, 0)
	return span{who: "somebody", kind: "somehow", limit: limit, fence: fence, from: begin.Add(time.Duration(from) * time.Second), to: begin.Add(time.Duration(to) * time.Second)}
}

const alone, shared = 1, 0

func TestEachRuleOfAStormIsCheckedAndNoOther(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		spans []span
		want  string // what is found; "" if nothing is
	}{
		"one after the other":       {[]span{heldFor(alone, 2, 3, 4), heldFor(alone, 1, 1, 3)}, ""},
		"two at once":               {[]span{heldFor(alone, 1, 1, 4), heldFor(alone, 2, 3, 5)}, "two holders"},
		"one inside another":        {[]span{heldFor(alone, 1, 1, 9), heldFor(alone, 2, 3, 3)}, "two holders"},
		"readers":                   {[]span{heldFor(shared, 5, 1, 4), heldFor(shared, 5, 2, 5), heldFor(shared, 4, 3, 3)}, ""},
		"a reader beside a writer":  {[]span{heldFor(alone, 1, 1, 4), heldFor(shared, 2, 3, 5)}, "two holders"},
		"a writer beside a reader":  {[]span{heldFor(shared, 1, 1, 9), heldFor(shared, 1, 2, 3), heldFor(alone, 2, 8, 9)}, "two holders"},
		"a reader beside a limit":   {[]span{heldFor(2, 0, 1, 4), heldFor(shared, 2, 3, 5)}, "two holders"},
		"one beside a limit":        {[]span{heldFor(2, 0, 1, 4), heldFor(alone, 2, 3, 5)}, "two holders"},
		"two of two":                {[]span{heldFor(2, 0, 1, 4), heldFor(2, 0, 2, 5), heldFor(2, 0, 4, 6), heldFor(2, 0, 5, 7)}, ""},
		"three of two":              {[]span{heldFor(2, 0, 1, 4), heldFor(2, 0, 2, 5), heldFor(2, 0, 3, 6)}, "3 holders, where 2 may be"},
		"three, of whom one says 2": {[]span{heldFor(3, 0, 1, 9), heldFor(2, 0, 2, 9), heldFor(3, 0, 3, 6)}, "3 holders, where 2 may be"},
		"three of three":            {[]span{heldFor(3, 0, 1, 9), heldFor(3, 0, 2, 9), heldFor(3, 0, 3, 6)}, ""},
		"a fence again":             {[]span{heldFor(alone, 7, 1, 2), heldFor(alone, 7, 2, 3)}, "fence 7"},
		"no fence":                  {[]span{heldFor(alone, 0, 1, 2)}, "fence 0"},
		"a reader's is a writer's":  {[]span{heldFor(alone, 7, 1, 2), heldFor(shared, 7, 2, 3)}, "fence 7"},
		"a writer's is a reader's":  {[]span{heldFor(shared, 8, 1, 2), heldFor(2, 0, 2, 3), heldFor(alone, 8, 4, 5)}, "fence 8"},
		"an older reader's":         {[]span{heldFor(alone, 7, 1, 2), heldFor(shared, 9, 2, 3), heldFor(shared, 8, 2, 3), heldFor(alone, 10, 4, 5)}, ""},
	} {
		h := newHistory()
		for _, s := range c.spans {
			h.add("name", s)
		}
		found := h.check(true)
		if c.want == "" && len(found) > 0 || c.want != "" && (len(found) != 1 || !strings.Contains(found[0].what, c.want)) {
			t.Errorf("%s: %v", what, found)
		}
		for _, f := range h.check(false) {
			if strings.Contains(f.what, "fence") {
				t.Errorf("%s, without fences: %v", what, f)
			}
		}
	}
}

func TestWhatIsKeptForAHandoffIsKeptUntilItIsAskedFor(t *testing.T) {
	t.Parallel()
	for asked, findings := range map[int]int{1: 0, 2: 0, 3: 1, 4: 1} { // somebody else had it at 2
		h := newHistory()
		h.add("name", heldFor(alone, 1, 0, 3))
		h.giveUp("name", "somebody", time.Unix(int64(asked), 0))
		other := heldFor(alone, 2, 2, 3)
		other.who = "another"
		h.add("name", other)
		if found := h.check(true); len(found) != findings {
			t.Errorf("asked for at %d: %v", asked, found)
		}
	}
}

func TestAFindingSaysWhoHeldTheNameAndWhatWasBroken(t *testing.T) {
	t.Parallel()
	h := newHistory()
	h.began = time.Unix(0, 0)
	h.add("name", heldFor(alone, 1, 1, 4))
	h.add("name", heldFor(alone, 2, 3, 5))
	h.add("name", heldFor(alone, 3, 50, 51))
	h.add("another", heldFor(alone, 4, 3, 5))
	h.strikes = []strike{{"a cable", time.Unix(2, 0), time.Unix(3, 0)}, {"another cable", time.Unix(40, 0), time.Unix(41, 0)}}
	text := h.around(h.check(true)[0], 5*time.Second)
	const want = `found at    3.000 s; who held name then:
     1.000 s to    4.000 s  somebody, somehow, fence 1: 
     2.000 s to    3.000 s  FAULT a cable
     3.000 s to    5.000 s  somebody, somehow, fence 2: `
	if text != want {
		t.Errorf("%s", text)
	}
}
