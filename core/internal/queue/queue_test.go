package queue

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
)

type (
	table  = Table[int, int, string]
	line   = Line[int, int, string]
	waiter = Waiter[int, int, string]
)

// world plays all who use one line, one step at a time. The steps of each follow one another as they do in truth; whose
// step is next is drawn.
type world struct {
	*table

	rng     *rand.Rand
	asking  map[int]*line   // calls that ask for themselves
	waiting map[int]*waiter // by caller
	has     int             // the hold that has the name; 0 for none
	ending  int             // the hold whose release is under way
	asker   *line
	next    int // number of the last caller or hold
	order   []int
	trail   []string
}

func (w *world) say(format string, args ...any) {
	w.trail = append(w.trail, fmt.Sprintf(format, args...))
}

func (w *world) start(l *line, start bool) error {
	if start && w.asker != nil {
		return errors.New("two askers")
	}
	if start {
		w.asker = l
	}
	return nil
}

func (w *world) got(h int) error {
	if w.has != 0 && w.has != w.ending {
		return fmt.Errorf("%d has it, and %d gets it", w.has, h)
	}
	w.has = h
	return nil
}

// hear has each caller hear its word. It says how many were given a hold.
func (w *world) hear(h int) (n int, err error) {
	for caller, x := range w.waiting {
		select {
		case word := <-x.Told:
			delete(w.waiting, caller)
			if word.Err == nil {
				n++
			}
			if word.Err == nil && word.Hold != h {
				return n, fmt.Errorf("%d was given %d, not %d", caller, word.Hold, h)
			}
			if word.Err == nil && len(w.order) > 0 && caller != w.order[0] {
				return n, fmt.Errorf("%d overtakes %v", caller, w.order)
			}
			w.forget(caller)
		default:
		}
	}
	return n, nil
}

func (w *world) forget(caller int) {
	for i, c := range w.order {
		if c == caller {
			w.order = append(w.order[:i:i], w.order[i+1:]...)
		}
	}
}

func some[V any](w *world, m map[int]V) (k int, v V, ok bool) {
	n := 0
	for i := range m {
		if n++; w.rng.IntN(n) == 0 {
			k = i
		}
	}
	v, ok = m[k]
	return k, v, ok
}

func (w *world) step() error {
	switch w.rng.IntN(9) {
	case 0: // somebody comes
		w.next++
		x := &waiter{Of: w.next}
		l, waits, has := w.Enter("n", false, x)
		if waits && has != w.has {
			return fmt.Errorf("%d has it, and %d is told of %d", w.has, w.next, has)
		}
		if !waits {
			w.say("%d asks", w.next)
			w.asking[w.next] = l
			if len(w.asking) > 1 || w.asker != nil || w.has != 0 {
				return errors.New("one asks at most")
			}
			return nil
		}
		w.say("%d waits", w.next)
		w.waiting[w.next] = x
		w.order = append(w.order, w.next)
	case 1: // a call is granted
		if c, l, ok := some(w, w.asking); ok {
			delete(w.asking, c)
			w.next++
			w.say("%d is granted %d", c, w.next)
			l.Granted(func() int { return w.next })
			return w.got(w.next)
		}
	case 2: // or refused
		if c, l, ok := some(w, w.asking); ok {
			delete(w.asking, c)
			w.say("%d is refused", c)
			x := &waiter{Of: c}
			w.waiting[c] = x
			w.order = append([]int{c}, w.order...)
			return w.start(l, l.Refused(x))
		}
	case 3: // or goes
		if c, l, ok := some(w, w.asking); ok {
			delete(w.asking, c)
			w.say("%d gives up", c)
			return w.start(l, l.GaveUp(""))
		}
	case 4: // a waiter leaves
		if c, x, ok := some(w, w.waiting); ok {
			w.say("%d leaves", c)
			if word, _ := x.Leave(w.table); word != (Word[int]{}) {
				return errors.New("a word that was heard before")
			}
			delete(w.waiting, c)
			w.forget(c)
		}
	case 5, 6: // the asker is granted
		if w.asker == nil {
			break
		}
		first, _, ok := w.asker.First(func() {})
		if !ok {
			w.say("the asker ends")
			if len(w.waiting) > 0 {
				return errors.New("somebody waits")
			}
			w.asker = nil
			return nil
		}
		if first != w.order[0] {
			return fmt.Errorf("asks for %d, not for %d", first, w.order[0])
		}
		w.next++
		w.say("the asker is granted %d", w.next)
		if !w.asker.Give(false, func(of int) (int, bool) { return w.next, of%5 != 0 }) {
			w.asker.Fail(func(of int) error {
				if of == first {
					return errors.New("never")
				}
				return nil
			})
			_, err := w.hear(0)
			return err
		}
		w.asker = nil
		if err := w.got(w.next); err != nil {
			return err
		}
		if n, err := w.hear(w.next); n != 1 || err != nil {
			return fmt.Errorf("%d were given it: %w", n, err)
		}
	case 7: // the hold ends
		if w.has == 0 || w.ending != 0 {
			break
		}
		h, early := w.has, w.rng.IntN(2) == 0
		passed, l := w.Pass("n", h, early, func(of int) bool { return of%3 != 0 })
		w.say("%d ends: passed %t", h, passed)
		if passed {
			if n, err := w.hear(h); n != 1 || err != nil {
				return fmt.Errorf("%d were given it: %w", n, err)
			}
			return nil
		}
		w.ending = h
		return w.start(l, l != nil)
	case 8: // its release is over
		if w.ending == 0 {
			break
		}
		h := w.ending
		w.ending = 0
		w.say("%d is over", h)
		if w.has == h {
			w.has = 0
		}
		l := w.Vacate("n", h)
		if passed, late := w.Pass("n", h, true, func(int) bool { return false }); passed || late != nil {
			return errors.New("what was lost before its work has ended is passed on")
		}
		return w.start(l, l != nil)
	}
	return nil
}

func (w *world) check() error {
	if len(w.waiting) > 0 && len(w.asking) == 0 && w.asker == nil && w.has == 0 {
		return errors.New("somebody waits, and nobody asks or holds")
	}
	if n, _ := w.Waiting(); n != len(w.waiting) {
		return fmt.Errorf("%d wait, not %d", n, len(w.waiting))
	}
	if w.empty.first != nil || w.empty.last != nil || w.empty.broken != nil || w.empty.changed != nil {
		return errors.New("somebody has written to what all lines share")
	}
	if len(w.waiting)+len(w.asking)+w.has+w.ending == 0 && w.asker == nil && len(w.lines) > 0 {
		return errors.New("a line that nobody needs")
	}
	return nil
}

func TestSomebodyAsksOrHoldsWheneverSomebodyWaits(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1500) {
		w := &world{table: New[int, int, string](), rng: rand.New(rand.NewPCG(seed, 1)), asking: map[int]*line{}, waiting: map[int]*waiter{}}
		for range 200 {
			if err := errors.Join(w.step(), w.check()); err != nil {
				t.Fatalf("seed %d: %v\n%q", seed, err, w.trail[max(0, len(w.trail)-12):])
			}
		}
	}
}

func TestWhoLeavesAsItIsGivenSomethingGetsIt(t *testing.T) {
	t.Parallel()
	q := New[int, int, string]()
	l, _, _ := q.Enter("n", false, new(waiter))
	l.Granted(func() int { return 1 })
	w := &waiter{Of: 2}
	if _, waits, has := q.Enter("n", false, w); !waits || has != 1 {
		t.Error(waits, has)
	}
	if passed, _ := q.Pass("n", 1, true, func(int) bool { return true }); !passed {
		t.Fatal("not passed")
	}
	if word, _ := w.Leave(q); word.Hold != 1 {
		t.Error(word)
	}
}

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
	q.Pass("n", 2, true, never)
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
