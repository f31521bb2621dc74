package queue

import "testing"

type waiter = Waiter[int, int, string]

func TestTheLastOneWhoLeavesBreaksTheRoundOff(t *testing.T) {
	t.Parallel()
	q := New[int, int, string]()
	l, _, _ := q.Enter("n", false, new(waiter))
	w := &waiter{Of: 1}
	if !l.Refused(w) {
		t.Fatal("no asker")
	}
	broken := false
	l.First(func() { broken = true })
	w2 := &waiter{Of: 2}
	q.Enter("n", false, w2)
	if _, end := w.Leave(q); end != nil {
		t.Error("somebody waits")
	}
	if _, end := w2.Leave(q); end == nil {
		t.Error("nobody waits")
	} else if end(); !broken {
		t.Error("another one")
	}
	_, waits, _ := q.Enter("n", false, &waiter{Of: 3})
	if of, _, ok := l.First(nil); !waits || !ok || of != 3 {
		t.Error("who comes before the asker has seen it is asked for")
	}
}

// The asker that began before the release was over has had the name since, and the line is another one.
func TestAReleaseThatIsAnsweredLateBeginsNobody(t *testing.T) {
	t.Parallel()
	q := New[int, int, string]()
	never := func(int) bool { return false }
	l, _, _ := q.Enter("n", false, new(waiter))
	l.Granted(func() int { return 1 })
	q.Enter("n", false, &waiter{Of: 2})
	if _, l = q.Pass("n", 1, true, never); l == nil || !l.Give(false, func(int) (int, bool) { return 2, true }) {
		t.Fatal("no asker")
	}
	if q.Pass("n", 2, true, never); !q.Watch("n").Held {
		t.Error("the name is taken until it is vacated")
	}
	q.Vacate("n", 2)
	if _, waits, _ := q.Enter("n", false, new(waiter)); waits {
		t.Fatal("the name is free")
	}
	q.Enter("n", false, new(waiter))
	if q.Vacate("n", 1) != nil {
		t.Error("a call asks, and an asker as well")
	}
}

func TestATryIsToldOfEachChange(t *testing.T) {
	t.Parallel()
	q := New[int, int, string]()
	l, _, asks := q.Try("n", false)
	_, v, again := q.Try("n", false)
	if !asks || again {
		t.Fatal("one asks at a time")
	}
	if _, _, again := q.Try("r", true); !again {
		t.Fatal("a reader")
	}
	r, _, again := q.Try("r", true)
	if !again {
		t.Fatal("readers need not ask one after the other")
	}
	r.Refused(&waiter{Of: 2})
	if _, _, again = q.Try("r", true); !again {
		t.Fatal("a reader who waits knows nothing of whom a try would find")
	}
	if v.Changed == nil || v.Held || v.Known {
		t.Error(v)
	}
	l.Refused(&waiter{Of: 1})
	l.Tell("held")
	<-v.Changed
	if v = q.Watch("n"); !v.Known || v.News != "held" {
		t.Error(v)
	}
	l.Give(false, func(int) (int, bool) { return 7, true })
	<-v.Changed
	if v = q.Watch("n"); !v.Held || v.Has != 7 || v.Known {
		t.Error(v)
	}
	q.Vacate("n", 7)
	<-v.Changed
	if v = q.Watch("n"); v.Changed != nil || v.Held {
		t.Error(v)
	}
}

// What was said to those who have left is no news, and neither is what the asker hears as it goes: nobody asks for the name any more.
func TestATryIsToldThatTheAskerHasGone(t *testing.T) {
	t.Parallel()
	q := New[int, int, string]()
	l, _, _ := q.Enter("n", false, new(waiter))
	w := &waiter{Of: 1}
	l.Refused(w)
	l.Tell("held")
	w.Leave(q)
	l.Tell("held, as it was")
	v := q.Watch("n")
	if v.Known || v.Changed == nil {
		t.Error(v)
	}
	l.First(nil)
	select {
	case <-v.Changed:
	default:
		t.Error("a try waits on")
	}
	if v = q.Watch("n"); v.Changed != nil {
		t.Error(v)
	}
}

func TestAPokeEndsNoWaitAndWhoIsGivenSomethingAsItLeavesGetsIt(t *testing.T) {
	t.Parallel()
	q := New[int, int, string]()
	l, _, _ := q.Enter("n", false, new(waiter))
	l.Granted(func() int { return 1 })
	first, second := &waiter{Of: 2}, &waiter{Of: 3}
	if _, waits, has := q.Enter("n", false, first); !waits || has != 1 {
		t.Error(waits, has)
	}
	q.Enter("n", false, second)
	for range 3 {
		q.Poke(func(of int) bool { return of == 2 })
	}
	if len(first.Told) != 1 || len(second.Told) != 0 {
		t.Error(len(first.Told), len(second.Told))
	}
	q.Poke(func(int) bool { return true })
	always := func(int) bool { return true }
	if passed, asks := q.Pass("n", 7, true, always); passed || asks != nil {
		t.Error("what was lost before its work has ended is passed on")
	}
	if passed, _ := q.Pass("n", 1, false, always); !passed {
		t.Fatal("not passed")
	}
	if word, _ := first.Leave(q); word.Hold != 1 || word.Look || len(first.Told) > 0 {
		t.Error(word)
	}
	if word, _ := second.Leave(q); word != (Word[int]{}) {
		t.Error(word)
	}
}
