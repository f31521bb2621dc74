package core

import (
	"time"

	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// alarm is when the watchdog has to look at a tenure, and by how much earlier it may.
type alarm struct {
	at    clock.Awake
	slack time.Duration
}

// schedule is a heap of tenures, the one to be looked at first on top. It has the times itself, is
// four wide and moves what it moves once: to touch tenures that are spread over the memory
// costs more than the rest of a renewal.
type schedule []scheduled

type scheduled struct {
	alarm
	tenure *tenure // whose index is the place here, -1 for none
}

const width = 4

// set puts t in its place, which it may have been in already.
func (h *schedule) set(t *tenure, p alarm) {
	if t.index < 0 {
		t.index = int32(len(*h)) //nolint:gosec // G115: so many leases fit in no memory
		*h = append(*h, scheduled{})
	}
	h.sift(int(t.index), scheduled{p, t})
}

// drop takes t out, if it is there.
func (h *schedule) drop(t *tenure) {
	if t.index < 0 {
		return
	}
	old := *h
	last := old[len(old)-1]
	old[len(old)-1] = scheduled{}
	*h = old[:len(old)-1]
	if last.tenure != t {
		h.sift(int(t.index), last)
	}
	t.index = -1
}

// sift puts p where it belongs, with the place i free.
func (h schedule) sift(i int, p scheduled) {
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

func (h schedule) put(i int, p scheduled) {
	h[i] = p
	p.tenure.index = int32(i) //nolint:gosec // G115: as above
}
