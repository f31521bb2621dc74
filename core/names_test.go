package core

import "testing"

// A release of this process is under way when the contexts of all who wait end: the next waiter does not become the
// contender before that is over, and leaves as one that never was.
func TestWhoWatchesAnAttemptIsToldThatNobodyMakesIt(t *testing.T) {
	t.Parallel()
	cfg := defaults()
	s, first, next := newNames(), &waiter{cfg: &cfg}, &waiter{cfg: &cfg}
	if !s.join("name", first) || s.join("name", next) {
		t.Fatal("the first waiter is not the contender, or the next one is")
	}
	_, _, watch := s.joinAlone("name", &waiter{cfg: &cfg})
	s.holders.alone["name"] = new(tenure)
	s.leave(first, true)
	s.leave(next, true)
	select {
	case v := <-watch:
		if !v.empty() {
			t.Errorf("it is told %+v", v)
		}
	default:
		t.Error("it is told nothing")
	}
}
