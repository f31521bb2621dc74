package watchdog

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// A wheel is asked what is due, at times that are up to three turns apart, and compared with a list.
func TestWhatIsDueComesOutOfTheWheelOnce(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		random, w, now := rand.New(rand.NewPCG(seed, 0)), newWheel[*dog](), clock.Awake(time.Hour)
		upTo := func(bits int) clock.Awake { return clock.Awake(random.Int64N(1 << (20 + random.IntN(bits)))) }
		in := make(map[*dog]scheduled[*dog])
		var all []*dog
		for range 20 {
			all = append(all, &dog{entry: Entry{index: -1}})
		}
		for range 200 {
			x := all[random.IntN(len(all))]
			switch random.IntN(4) {
			case 0:
				w.drop(x)
				delete(in, x)
			case 1, 2:
				p := scheduled[*dog]{now + upTo(16), time.Duration(upTo(10)), x}
				w.set(x, p.at, p.early)
				in[x] = p
			default:
				now += upTo(15)
				everything := random.IntN(9) == 0
				due := w.due(now, everything)
				for _, x := range all {
					p, ok := in[x]
					if want := ok && (everything || p.at.Sub(now) <= p.early); want != slices.Contains(due, x) {
						t.Fatalf("seed %d: due %t, and not %t: %+v", seed, !want, want, p)
					}
				}
				for _, x := range due {
					delete(in, x)
				}
			}
			first := clock.Never
			for _, p := range in {
				first = min(first, p.at)
			}
			if at := w.first(); at > first || (at == clock.Never) != (len(in) == 0) || len(w.all(0)) != len(in) {
				t.Fatalf("seed %d: the first at %d, not %d; %d, not %d", seed, at, first, len(w.all(0)), len(in))
			}
		}
	}
}

// Many entries go round together, and are due or leave in each slot once. A slot must not keep the room that it needed for them.
func TestAWheelHasRoomForWhatIsInIt(t *testing.T) {
	t.Parallel()
	const many = 1000
	for how, gone := range map[string]func(w *wheel[*dog], all []*dog, now clock.Awake){
		"are due": func(w *wheel[*dog], _ []*dog, now clock.Awake) { w.due(now, false) },
		"leave": func(w *wheel[*dog], all []*dog, _ clock.Awake) {
			for _, x := range all {
				w.drop(x)
			}
		},
	} {
		w := newWheel[*dog]()
		var all []*dog
		for range many {
			all = append(all, &dog{entry: Entry{index: -1}})
		}
		for now := clock.Awake(0); now < slots*span; now += span {
			for _, x := range all {
				w.set(x, now, 0)
			}
			gone(w, all, now)
		}
		room := 0
		for i := range w {
			room += cap(w[i].of)
		}
		if room > 50*many {
			t.Errorf("they %s: room for %d, after %d", how, room, many)
		}
	}
}
