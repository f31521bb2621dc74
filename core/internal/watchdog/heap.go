package watchdog

import (
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// heap has the entry to look at first on top. It holds the times itself, has four children per entry, and moves
// each entry only once: touching entries that are spread over the memory costs more than the rest of a renewal.
type heap[W Watched] []scheduled[W]

type scheduled[W Watched] struct {
	at    clock.Awake
	early time.Duration
	of    W // the index of its entry is the place in the heap; -1 for none
}

const width = 4

// set puts w in its place, whether it was in the heap before or not.
func (h *heap[W]) set(w W, at clock.Awake, early time.Duration) {
	e := w.Entry()
	if e.index < 0 {
		e.index = int32(len(*h)) //nolint:gosec // G115: so many leases fit in no memory
		*h = append(*h, scheduled[W]{})
	}
	h.sift(int(e.index), scheduled[W]{at, early, w})
}

// drop takes w out, if it is there.
func (h *heap[W]) drop(w W) {
	e := w.Entry()
	if e.index < 0 {
		return
	}
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = scheduled[W]{}
	*h = old[:len(old)-1]
	if last.of.Entry() != e {
		h.sift(int(e.index), last)
	}
	e.index = -1
}

// sift puts p where it belongs; place i is free.
func (h heap[W]) sift(i int, p scheduled[W]) {
	for i > 0 && p.at < h[(i-1)/width].at {
		h.put(i, h[(i-1)/width])
		i = (i - 1) / width
	}
	for c := width*i + 1; c < len(h); c = width*i + 1 {
		first := c
		for d := c + 1; d < min(c+width, len(h)); d++ {
			if h[d].at < h[first].at {
				first = d
			}
		}
		if p.at <= h[first].at {
			break
		}
		h.put(i, h[first])
		i = first
	}
	h.put(i, p)
}

func (h heap[W]) put(i int, p scheduled[W]) {
	h[i] = p
	p.of.Entry().index = int32(i) //nolint:gosec // G115: as above
}
