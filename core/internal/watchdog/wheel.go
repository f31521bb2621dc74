package watchdog

import (
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// wheel is a hashed timing wheel: entries that are due at about the same time are in one slot, with those of later turns of the wheel. So
// nothing that is spread over the memory is touched but what is due: with a million leases that costs more than the rest of a renewal.
type wheel[W Watched] [slots]slot[W]

// slot has what is due in one span of each turn.
type slot[W Watched] struct {
	of    []scheduled[W]
	first clock.Awake // not after the time of any of them; Never if there are none
	early clock.Awake // not after the time from which one of them may be looked at
}

type scheduled[W Watched] struct {
	at    clock.Awake
	early time.Duration
	of    W // whose entry has the places of the slot and in it
}

const (
	slots = 512
	span  = clock.Awake(16 * time.Millisecond) // so a turn takes 8 s
)

func newWheel[W Watched]() *wheel[W] {
	w := new(wheel[W])
	for i := range w {
		w[i].first, w[i].early = clock.Never, clock.Never
	}
	return w
}

func slotOf(at clock.Awake) int { return int(uint64(at/span) % slots) } //nolint:gosec // G115: any slot will do

// set puts x in its place, whether it was in the wheel before or not.
func (w *wheel[W]) set(x W, at clock.Awake, early time.Duration) {
	w.drop(x)
	i := slotOf(at)
	e, s := x.Entry(), &w[i]
	e.slot, e.index = uint16(i), int32(len(s.of)) //nolint:gosec // G115: so many leases fit in no memory
	s.add(scheduled[W]{at, early, x})
}

func (s *slot[W]) add(p scheduled[W]) {
	s.of = append(s.of, p)
	s.first, s.early = min(s.first, p.at), min(s.early, p.at.Add(-p.early))
}

// drop takes x out, if it is there.
func (w *wheel[W]) drop(x W) {
	e := x.Entry()
	if e.index < 0 {
		return
	}
	s := &w[e.slot]
	last := len(s.of) - 1
	moved := s.of[last]
	s.of[last] = scheduled[W]{}
	if s.of = s.of[:last]; int(e.index) < last {
		s.of[e.index] = moved
		moved.of.Entry().index = e.index
	}
	if e.index = -1; last == 0 {
		s.first, s.early = clock.Never, clock.Never
	}
	s.shrink()
}

// shrink gives back room that is not needed any more. What is renewed together goes from slot to slot, and would need it in each of them.
func (s *slot[W]) shrink() {
	const least = 32
	if c := cap(s.of); c > least && len(s.of) <= c/4 {
		s.of = append([]scheduled[W](nil), s.of...)
	}
}

// due takes out what may be looked at, all of it if all is true. What is overdue comes first.
func (w *wheel[W]) due(now clock.Awake, all bool) (due []W) {
	for i := range w {
		if s := &w[(slotOf(now)+slots/2+i)%slots]; all || s.early <= now {
			due = s.due(due, now, all)
		}
	}
	return due
}

func (s *slot[W]) due(due []W, now clock.Awake, all bool) []W {
	was := s.of
	s.of, s.first, s.early = was[:0], clock.Never, clock.Never
	for i, p := range was {
		switch {
		case all || p.at.Add(-p.early) <= now:
			p.of.Entry().index = -1
			due = append(due, p.of)
		case len(s.of) < i:
			p.of.Entry().index = int32(len(s.of)) //nolint:gosec // G115: as above
			fallthrough
		default:
			s.add(p)
		}
	}
	clear(was[len(s.of):])
	s.shrink()
	return due
}

// first is when something is due, or a little earlier; Never if there is nothing.
func (w *wheel[W]) first() clock.Awake {
	first := clock.Never
	for i := range w {
		first = min(first, w[i].first)
	}
	return first
}

// all is everything, n entries, in no order.
func (w *wheel[W]) all(n int) []W {
	all := make([]W, 0, n)
	for i := range w {
		for _, p := range w[i].of {
			all = append(all, p.of)
		}
	}
	return all
}
