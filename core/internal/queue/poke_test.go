package queue

import "testing"

func TestAPokeEndsNoWait(t *testing.T) {
	t.Parallel()
	q := New[int, int, string]()
	l, _, _ := q.Enter("n", false, new(waiter))
	l.Granted(func() int { return 1 })
	first, second := &waiter{Of: 2}, &waiter{Of: 3}
	q.Enter("n", false, first)
	q.Enter("n", false, second)
	for range 3 {
		q.Poke(func(of int) bool { return of == 2 })
	}
	if len(first.Told) != 1 || len(second.Told) != 0 {
		t.Error(len(first.Told), len(second.Told))
	}
	q.Poke(func(int) bool { return true })
	if passed, _ := q.Pass("n", 1, false, func(int) bool { return true }); !passed {
		t.Fatal("not passed")
	}
	if word, _ := first.Leave(q); word.Hold != 1 || word.Look || len(first.Told) > 0 {
		t.Error(word)
	}
	if word, _ := second.Leave(q); word != (Word[int]{}) {
		t.Error(word)
	}
}
