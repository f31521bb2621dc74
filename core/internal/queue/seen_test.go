package queue

import (
	"fmt"
	"testing"
)

func TestALookAtOneNameTouchesNoOther(t *testing.T) {
	t.Parallel()
	table := New[string, int, int]()
	var all []*Waiter[string, int, int]
	for _, key := range []string{"a", "a\x00readers", "a\x002", "a:1"} {
		l, _, _ := table.Enter(key, false, new(Waiter[string, int, int]))
		l.Granted(func() int { return 7 })
		w := &Waiter[string, int, int]{Of: "waits for " + key}
		table.Enter(key, false, w)
		all = append(all, w)
	}
	if l := table.Of("a:1"); len(l) != 1 || l[0].Key != "a:1" || !l[0].Held || l[0].Has != 7 || len(l[0].Wait) != 1 {
		t.Errorf("%+v", l)
	}
	if all, one := len(table.All("a")), len(table.All("a:")); all != 4 || one != 1 {
		t.Errorf("%d lines, and %d of them", all, one)
	}
	all[2].Leave(table)
	table.Vacate("a\x002", 7) // of the lines of a name, this one alone is forgotten
	other := table.lines["a:1"]
	table.lines["a:1"] = nil // whoever looks at it panics
	if l := table.Of("a"); len(l) != 2 || l[0].Key != "a\x00readers" || len(l[0].Wait) != 1 || l[1].Wait[0] != "waits for a" {
		t.Errorf("%+v", l)
	}
	table.lines["a:1"] = other
	for _, w := range []int{0, 1, 3} {
		all[w].Leave(table)
	}
	for _, l := range table.All("") {
		table.Vacate(l.Key, 7)
	}
	one, _, _ := table.Try("a", true)
	two, _, _ := table.Try("a", true)
	one.GaveUp(0)
	if three, _, _ := table.Try("a", true); three != two {
		t.Error("the queue of a call that asks was forgotten")
	}
	two.GaveUp(0)
	if two.GaveUp(9); one.Outcome() != 0 {
		t.Error("an outcome that nobody has watched was kept")
	}
	if len(table.lines) > 0 || len(table.kin) > 0 {
		t.Error(fmt.Sprint(table.lines, table.kin), "are left")
	}
}
