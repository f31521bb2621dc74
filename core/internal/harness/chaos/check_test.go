//go:build linux

package chaos

import (
	"cmp"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func ms(n int64) int64 { return n * int64(time.Millisecond) }

// told is a lease of a history that is made up, in milliseconds. What is 0 never happened.
type told struct {
	id, worker, name                           string
	mode                                       Mode
	fence                                      uint64
	asked, answered, last, releasing, released int64
	outcome                                    string // of the release; "" is ok
	complete                                   bool
	keep, left                                 int64
	handoff                                    string
}

func (l told) events() []Event {
	e := Event{ID: l.id, Worker: l.worker, Name: l.name, Mode: l.mode, Handoff: l.handoff}
	at := func(kind Kind, t int64) Event {
		e.Kind, e.At = kind, ms(t)
		return e
	}
	answered := at(Answered, l.answered)
	answered.Class, answered.Fence, answered.Keep = "ok", l.fence, ms(l.keep)
	all := []Event{at(Asked, l.asked), answered}
	if l.last != 0 {
		believed := at(Believed, l.last)
		believed.Last, believed.Until = ms(l.last), ms(l.answered+990)
		all = append(all, believed)
	}
	if l.releasing != 0 {
		releasing, released := at(Releasing, l.releasing), at(Released, l.released)
		releasing.Last, releasing.Complete, releasing.Keep = ms(l.last), l.complete, ms(l.left)
		released.Class = cmp.Or(l.outcome, "ok")
		all = append(all, releasing, released)
	}
	return all
}

// one is an ordinary lease, 10 ms after from, until 40 ms after it.
func one(id, name string, fence uint64, from int64) told {
	worker, _, _ := strings.Cut(id, "-")
	return told{id: id, worker: worker, name: name, fence: fence, asked: from, answered: from + 10, last: from + 20, releasing: from + 30, released: from + 40}
}

func with(l told, change func(l *told)) told {
	change(&l)
	return l
}

func TestEachCheckerFindsWhatItIsFor(t *testing.T) {
	t.Parallel()
	reader := func(id string, fence uint64, from int64) told {
		return with(one(id, readName, fence, from), func(l *told) { l.mode = Reader })
	}
	limited := func(id string, from int64) told {
		return with(one(id, limitedName, 0, from), func(l *told) { l.mode = Limited })
	}
	kept := with(one("w1.1-1", keptName, 1, 0), func(l *told) { l.keep = 400 })
	done := with(one("w1.1-1", "job-1", 1, 0), func(l *told) { l.complete = true })
	passed := with(one("w1.1-1", passedName, 1, 0), func(l *told) { l.left = 300 })
	part := func(outcome, id string) told {
		return with(one(id, "p", 1, 0), func(l *told) { l.outcome = outcome })
	}
	wrote := func(id string, fence uint64, at int64) Event {
		return Event{At: ms(at), Kind: Wrote, ID: id, Name: "a", Fence: fence, Fenced: true}
	}
	refused := func(class string, from, to int64) []Event {
		return []Event{
			{At: ms(from), Kind: Asked, ID: "w1.1-9", Worker: "w1.1", Name: "job-1", Deadline: ms(from + 100)},
			{At: ms(to), Kind: Answered, ID: "w1.1-9", Worker: "w1.1", Name: "job-1", Class: class},
		}
	}
	for _, c := range []struct {
		name  string
		tell  []told
		more  []Event
		red   string
		calls bool // the checker that looks at calls too
	}{
		{"one after the other", []told{one("w1.1-1", "a", 1, 0), one("w2.1-1", "a", 2, 50)}, nil, "", false},
		{"two at once", []told{one("w1.1-1", "a", 1, 0), one("w2.1-1", "a", 2, 5)}, nil, "order trust", false},
		{"a fence again", []told{one("w1.1-1", "a", 1, 0), one("w2.1-1", "a", 1, 50)}, nil, "order", false},
		{"no fence", []told{one("w1.1-1", "a", 0, 0)}, nil, "order", false},
		{"a lost one that was freed", []told{part("lost", "w1.1-1"), one("w2.1-1", "p", 2, 50)}, nil, "order", false},
		{"one of several that were lost", []told{part("lost", "w1.1-1/p"), one("w2.1-1", "p", 2, 50)}, nil, "", false},
		{"readers", []told{reader("w1.1-1", 1, 0), reader("w2.1-1", 1, 5)}, nil, "", false},
		{"a writer beside a reader", []told{reader("w1.1-1", 1, 0), one("w2.1-1", readName, 2, 5)}, nil, "sharing", false},
		{"a reader's fence after a writer", []told{one("w1.1-1", readName, 7, 0), reader("w2.1-1", 7, 50)}, nil, "sharing", false},
		{"two of two", []told{limited("w1.1-1", 0), limited("w2.1-1", 5)}, nil, "", false},
		{"three of two", []told{limited("w1.1-1", 0), limited("w2.1-1", 5), limited("w3.1-1", 6)}, nil, "sharing", false},
		{"kept, and got too early", []told{kept, one("w2.1-1", keptName, 2, 350)}, nil, "kept", false},
		{"kept, and got then", []told{kept, one("w2.1-1", keptName, 2, 400)}, nil, "", false},
		{"done twice", []told{done, one("w2.1-1", "job-1", 2, 50)}, nil, "done", false},
		{"done long after", []told{done, one("w2.1-1", "job-1", 2, 3100)}, nil, "", false},
		{"said to be done by nobody", []told{one("w1.1-1", "job-1", 1, 0)}, refused("done", 50, 60), "done", false},
		{"left for a hand-off", []told{passed, with(one("w2.1-1", passedName, 2, 50), func(l *told) { l.handoff = "w1.1-1" })}, nil, "", false},
		{"left for a hand-off, and taken without", []told{passed, one("w2.1-1", passedName, 2, 50)}, nil, "order", false},
		{"writes in order", nil, []Event{wrote("x", 1, 1), wrote("x", 1, 2), wrote("y", 2, 3)}, "", false},
		{"a late write", nil, []Event{wrote("y", 2, 1), wrote("x", 1, 2)}, "store", false},
		{"a fence of two", nil, []Event{wrote("y", 2, 1), wrote("x", 2, 2)}, "store", false},
		{"late", nil, refused("ended", 1000, 2000), "served", true},
		{"an answer that nobody knows", nil, refused("other", 1000, 1010), "served", true},
		{"late, and the machine stood still", nil, append(refused("ended", 1000, 2000), Event{At: ms(1950), Kind: Stalled, Worker: "w1.1", Last: ms(1050)}), "", true},
		{"late, and another one stood still", nil, append(refused("ended", 1000, 2000), Event{At: ms(1950), Kind: Stalled, Worker: "w2.1", Last: ms(1050)}), "served", true},
	} {
		events := slices.Clone(c.more)
		for _, l := range c.tell {
			events = append(events, l.events()...)
		}
		if c.calls {
			events = append(events, Event{At: ms(9000), Kind: Probed, Class: "ok"})
		}
		slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
		found := newEvidence(One, events, nil).Findings()
		delete(found, "left") // nobody has counted
		if !c.calls {
			delete(found, "served")
		}
		if red := strings.Join(Red(found), " "); red != c.red {
			t.Errorf("%s: red: %q; want %q: %v", c.name, red, c.red, found)
		}
	}
}

func TestTheLedgerIsAWitnessOfTrustAndOfWhatIsLeft(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name           string
		expiry, to     int64
		end, token     string
		last, released int64
		fault          string
		red            string
	}{
		{"it is released", 1000, 40, endFreed, "token", 20, 40, "", ""},
		{"it is trusted for longer than promised", 1000, 1000, endExpired, "token", 1100, 0, "dark", "trust"},
		{"it is left to its TTL", 1000, 1000, endExpired, "token", 20, 0, "", "left"},
		{"it is left to its TTL, and a fault was in the way", 1000, 1000, endExpired, "token", 20, 0, "dark", ""},
		{"it is trusted after it was taken", 3000, 50, endOperator, "token", 1100, 0, "", "owner"},
		{"it is trusted after it was taken, and nobody could tell", 3000, 50, endOperator, "token", 1100, 0, "dark", ""},
		{"it is left for a hand-off for too long", 301, 300, endFreed, "!hash", 20, 40, "", "left"},
	} {
		g := &Grant{Name: "a", Token: c.token, Worker: "w1.1", To: ms(c.to), End: c.end, Expiry: ms(c.expiry), Steps: []step{{0, ms(c.expiry)}}}
		l := with(one("w1.1-1", "a", 1, 0), func(l *told) { l.last, l.released = c.last, c.released })
		if c.released == 0 {
			l.releasing = 0
		}
		events := append(l.events(), Event{At: ms(9000), Kind: Left})
		if c.fault != "" {
			events = append([]Event{{Kind: Faulted, ID: "f", Fault: c.fault, Worker: "w1"}}, events...)
		}
		found := newEvidence(One, events, []*Ledger{{Grants: []*Grant{g}}}).Findings()
		delete(found, "served")
		if red := strings.Join(Red(found), " "); red != c.red {
			t.Errorf("%s: red: %q; want %q: %v", c.name, red, c.red, found)
		}
	}
	if found := checkTrust(newEvidence(One, one("w1.1-1", "a", 1, 0).events(), []*Ledger{{}})); len(found) == 0 {
		t.Error("trust without a grant is not found")
	}
}

func TestWhatSomebodyCameForMayHaveBeenUsed(t *testing.T) {
	t.Parallel()
	giver := with(one("w1.1-1", passedName, 1, 0), func(l *told) { l.left = 300 })
	next := one("w3.1-1", passedName, 2, 100)
	came := []Event{
		{At: ms(60), Kind: Asked, ID: "w2.1-1", Worker: "w2.1", Name: passedName, Handoff: giver.id, Deadline: math.MaxInt64},
		{At: ms(70), Kind: Answered, ID: "w2.1-1", Worker: "w2.1", Name: passedName, Class: "ended"},
	}
	for _, lost := range []bool{true, false} {
		events := append(giver.events(), next.events()...)
		if lost {
			events = append(events, came...)
		}
		slices.SortStableFunc(events, func(a, b Event) int { return cmp.Compare(a.At, b.At) })
		if found := checkOrder(newEvidence(One, events, nil)); (len(found) == 0) != lost {
			t.Errorf("somebody came: %t: %q", lost, found)
		}
	}
}
