package explore

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

var (
	depth  = flag.Int("explore.depth", 2, "how many deviations from a default schedule")
	most   = flag.Int("explore.most", 1000, "how many schedules of each world and each default schedule; beyond that they are drawn")
	random = flag.Int("explore.random", 200, "how many random walks of each world")
	seed   = flag.Uint64("explore.seed", 0, "of what is drawn; 0 for one that changes")
	only   = flag.String("explore.world", "", "the world to play; all by default")
)

func newSim(w *world, order int) *sim {
	s := &sim{world: w, order: order, server: server{marked: map[string]bool{}, direct: !w.told}, excused: map[string]bool{}, kept: map[string]bool{}}
	for i, callers := range w.procs {
		p := newProcess(s, string(rune('A'+i)))
		s.procs = append(s.procs, p)
		for j, c := range callers {
			p.play(c, fmt.Sprintf("%s%d", p.name, j))
		}
	}
	return s
}

// check looks at the promises after a move.
func (s *sim) check() {
	for _, x := range s.live[min(1, len(s.live)):] {
		if l := x.is.limit; !together(l) || l != s.live[0].is.limit || l > 0 && len(s.live) > l {
			s.fail("%s and %s work at the same time", s.live[0].name, x.name)
		}
	}
	for _, t := range s.timers {
		if t.strict && t.at <= s.now {
			return // a context may end in this very moment
		}
	}
	for _, x := range s.live {
		h := x.got
		left := h.Remaining(clock.Awake(s.now))
		if left <= 0 {
			s.fail("%s works, and is not trusted", x.name)
		}
		if s.server.until(h.Claim.Cleaner().Token) < s.theirs(s.now+left) {
			s.fail("%s is trusted for %s, and the backend says: %v", x.name, left, &s.server)
		}
	}
}

// over looks at what is left when nothing can happen any more.
func (s *sim) over() {
	last := time.Duration(0)
	for _, p := range s.procs {
		for _, x := range p.callers {
			if !x.over {
				s.fail("%s is not done", x)
			} else if !x.justified() {
				s.fail("%s: not justified", x)
			}
			last = max(last, x.ended)
		}
		if n, lines := p.place.Table.Waiting(); n+lines > 0 {
			s.fail("%s: %d wait in %d lines", p.name, n, lines)
		}
		if len(p.watched) > 0 {
			s.fail("%s: %d are watched", p.name, len(p.watched))
		}
	}
	s.server.meet(s.theirs(s.now))
	for _, h := range s.server.holders {
		if !s.excused[h.token] {
			s.fail("an orphan: %v", &s.server)
		}
	}
	for _, e := range s.server.queue {
		if !s.kept[e.claim.Token] { // a look that was held back may come after the release
			s.fail("a dead entry: %v", &s.server)
		}
	}
	if limit := s.world.limit(s.faults + len(s.excused)); last > limit {
		s.fail("the last one was served after %s, later than %s", last, limit)
	}
}

// limit is when everybody is to have been served.
func (w *world) limit(faults int) time.Duration {
	sum, ttl := 4*time.Second+w.down[1], 3*time.Second
	for _, p := range w.procs {
		for _, c := range p {
			sum += max(c.works, 10*ms) + c.comes + c.minHold
			ttl = max(ttl, c.ttl)
		}
	}
	late := 2 * ttl // how much later it can be for each fault
	if w.deaf {
		late = max(late, 9*time.Second) // a round of looks takes eight, and so may its answer
	}
	return sum + time.Duration(faults)*late
}

// deviation is a choice that is not the default one.
type deviation struct{ move, choice int }

// explorer plays schedules of one world. The first that breaks a promise ends the test.
type explorer struct {
	*testing.T

	w         *world
	order     int
	size      int // about how many schedules there are
	schedules int
	steps     int
	rng       *rand.Rand
}

// play plays one schedule, and once more to tell of its moves if it breaks a promise. choose begins it.
func (e *explorer) play(what any, choose func() func(n int) int) {
	s := newSim(e.w, e.order)
	e.schedules++
	e.steps += s.run(choose())
	if s.err != nil {
		s = newSim(e.w, e.order)
		s.tracing = true
		s.run(choose())
		e.Fatalf("world %q, order %d, schedule %v: %v\n%s", e.w.name, e.order, what, s.err, strings.Join(s.trail, "\n"))
	}
}

// from plays the schedule with these deviations, and those with further ones. Of the deepest ones some are drawn if there are too many.
func (e *explorer) from(devs []deviation, deeper int) {
	var widths []int // how many choices there were at each move
	e.play(devs, func() func(int) int {
		widths = nil
		return func(n int) int {
			c := 0
			for _, d := range devs {
				if d.move == len(widths) {
					c = d.choice
				}
			}
			widths = append(widths, n)
			return min(c, n-1)
		}
	})
	first := 0
	if len(devs) == 0 {
		e.size = size(widths)
	} else {
		first = devs[len(devs)-1].move + 1
	}
	for i := first; i < len(widths) && deeper > 0; i++ {
		for c := 1; c < widths[i]; c++ {
			if deeper > 1 || e.rng.IntN(e.size) < *most {
				e.from(append(slices.Clip(devs), deviation{i, c}), deeper-1)
			}
		}
	}
}

// size is about how many schedules there are if there are so many choices.
func size(widths []int) int {
	sum, size := 0, 1
	for _, w := range widths {
		sum += w - 1
	}
	for i := range *depth {
		size = size * sum / (i + 1)
	}
	return size
}

// walk plays one schedule with deviations that are drawn.
func (e *explorer) walk(seed uint64) {
	e.play(seed, func() func(int) int {
		rng := rand.New(rand.NewPCG(seed, 7))
		odds := 2 + rng.IntN(30)
		return func(n int) int {
			if rng.IntN(odds) > 0 {
				return 0
			}
			return rng.IntN(n)
		}
	})
}

func TestEveryScheduleKeepsThePromises(t *testing.T) {
	t.Parallel()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	t.Logf("%d worlds, seed %d", len(worlds), *seed)
	for i := range worlds {
		w := &worlds[i]
		if *only != "" && w.name != *only {
			continue
		}
		for order := range 2 {
			began, e := time.Now(), &explorer{T: t, w: w, order: order, rng: rand.New(rand.NewPCG(*seed, uint64(i)))}
			e.from(nil, *depth)
			for i := range *random {
				e.walk(*seed + uint64(i))
			}
			t.Logf("%-22s order %d: about %7d schedules, %6d played, %8d steps, %s",
				w.name, order, e.size, e.schedules, e.steps, time.Since(began).Round(ms))
		}
	}
}
