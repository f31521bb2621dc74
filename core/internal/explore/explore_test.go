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
	for _, w := range s.live[min(1, len(s.live)):] {
		if l := w.player.is.limit; !together(l) || l != s.live[0].player.is.limit || l > 0 && len(s.live) > l {
			s.fail("%s and %s work at the same time", s.live[0].player.name, w.player.name)
		}
	}
	for _, t := range s.timers {
		if t.strict && t.at <= s.now {
			return // a context may end in this very moment
		}
	}
	for _, w := range s.live {
		h := w.player.got
		left := h.Remaining(clock.Awake(s.now))
		if left <= 0 {
			s.fail("%s works, and is not trusted", w.player.name)
		}
		if s.server.until(h.Claim.Cleaner().Token) < s.theirs(s.now+left) {
			s.fail("%s is trusted for %s, and the backend says: %v", w.player.name, left, &s.server)
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
		if !s.kept[e.token] { // a look that was held back may come after the release
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

// player of schedules.
type explorer struct {
	w         *world
	order     int
	schedules int
	steps     int
	rng       *rand.Rand
}

// play plays one schedule. It returns how many choices there were at each move.
func (e *explorer) play(devs []deviation, tracing bool) (widths []int, s *sim) {
	s = newSim(e.w, e.order)
	s.tracing = tracing
	i := 0
	e.schedules++
	e.steps += s.run(func(n int) int {
		c := 0
		for _, d := range devs {
			if d.move == i {
				c = d.choice
			}
		}
		if tracing && c != 0 {
			s.say("-- deviation %d of %d", c, n)
		}
		widths = append(widths, n)
		i++
		return min(c, n-1)
	})
	return widths, s
}

// from plays all schedules with further deviations after devs. keep says whether to play one of them.
func (e *explorer) from(devs []deviation, deeper int, keep func() bool) ([]deviation, error) {
	widths, s := e.play(devs, false)
	if s.err != nil {
		return devs, s.err
	}
	if deeper == 0 {
		return nil, nil
	}
	first := 0
	if len(devs) > 0 {
		first = devs[len(devs)-1].move + 1
	}
	for i := first; i < len(widths); i++ {
		for c := 1; c < widths[i]; c++ {
			if deeper == 1 && !keep() {
				continue
			}
			if bad, err := e.from(append(slices.Clip(devs), deviation{i, c}), deeper-1, keep); err != nil {
				return bad, err
			}
		}
	}
	return nil, nil
}

// walk plays one schedule with deviations that are drawn.
func (e *explorer) walk(seed uint64, tracing bool) *sim {
	rng := rand.New(rand.NewPCG(seed, 7))
	s := newSim(e.w, e.order)
	s.tracing = tracing
	e.schedules++
	odds := 2 + rng.IntN(30)
	e.steps += s.run(func(n int) int {
		if rng.IntN(odds) > 0 {
			return 0
		}
		return rng.IntN(n)
	})
	return s
}

func TestEveryScheduleKeepsThePromises(t *testing.T) {
	t.Parallel()
	if *seed == 0 {
		*seed = uint64(time.Now().UnixNano())
	}
	began := time.Now()
	var schedules, steps int
	for i := range worlds {
		w := &worlds[i]
		if *only != "" && w.name != *only {
			continue
		}
		for order := range 2 {
			e := &explorer{w: w, order: order, rng: rand.New(rand.NewPCG(*seed, uint64(i)))}
			e.all(t)
			schedules, steps = schedules+e.schedules, steps+e.steps
		}
	}
	t.Logf("%d schedules of %d worlds, %d steps in %s; seed %d", schedules, len(worlds), steps, time.Since(began).Round(ms), *seed)
}

func (e *explorer) all(t *testing.T) {
	t.Helper()
	began := time.Now()
	size := e.size()
	keep := func() bool { return size <= *most || e.rng.IntN(size) < *most }
	bad, err := e.from(nil, *depth, keep)
	if err != nil {
		_, s := e.play(bad, true)
		t.Fatalf("world %q, order %d, schedule %v: %v\n%s", e.w.name, e.order, bad, err, strings.Join(s.trail, "\n"))
	}
	for i := range *random {
		if s := e.walk(*seed+uint64(i), false); s.err != nil {
			s = e.walk(*seed+uint64(i), true)
			t.Fatalf("world %q, order %d, walk %d: %v\n%s", e.w.name, e.order, *seed+uint64(i), s.err, strings.Join(s.trail, "\n"))
		}
	}
	t.Logf("%-22s order %d: about %7d schedules, %6d played, %8d steps, %s", e.w.name, e.order, size, e.schedules, e.steps, time.Since(began).Round(ms))
}

// size is about how many schedules there are.
func (e *explorer) size() int {
	widths, _ := e.play(nil, false)
	sum := 0
	for _, w := range widths {
		sum += w - 1
	}
	size := 1
	for i := range *depth {
		size = size * sum / (i + 1)
	}
	return size
}
