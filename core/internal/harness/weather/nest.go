//go:build linux

package weather

import "slices"

// enter puts h inside the lease that it has re-entered, if there is one.
func (h *Hold) enter(outer *Hold) {
	if outer != nil {
		h.Outer = outer
		outer.Inner = append(outer.Inner, h)
	}
}

// holds says whether h is a holder of its name by itself, as the lock service knows it.
func (h *Hold) holds() bool { return h.Outer == nil && h.Mode != Degraded }

// nest is h and all that is inside it.
func (h *Hold) nest() []*Hold { return append([]*Hold{h}, h.Inner...) }

// beliefs are those of the nest.
func (h *Hold) beliefs() (all []Event) {
	for _, x := range h.nest() {
		all = append(all, x.Beliefs...)
	}
	return all
}

// lastReleased is who ended the nest: the one that was released last, or that never was.
func (h *Hold) lastReleased() *Hold {
	return slices.MaxFunc(h.nest(), func(a, b *Hold) int {
		switch {
		case a.Releasing == 0:
			return 1
		case b.Releasing == 0 || a.Releasing < b.Releasing:
			return -1
		default:
			return 1
		}
	})
}

// beside says whether two leases of a name may be trusted together: of one nest, of one kind that
// shares, or of two processes of which one knows that it has asked nobody.
func (h *Hold) beside(o *Hold) bool {
	switch {
	case h.Mode == Degraded || o.Mode == Degraded:
		return h.Worker != o.Worker
	case h.outermost() == o.outermost():
		return true
	default:
		return h.Mode != Alone && h.Mode != Inner && h.Mode == o.Mode
	}
}

func (h *Hold) outermost() *Hold {
	if h.Outer != nil {
		return h.Outer
	}
	return h
}

// lapsed is when the nest was known to be lost, or never.
func (h *Hold) lapsed() int64 {
	first := never
	for _, x := range h.nest() {
		if x.Lapsed != 0 {
			first = min(first, x.Lapsed)
		}
	}
	return first
}
