//go:build linux

package weather

import "fmt"

// outlived looks for trust in a lease after another one of its nest was lost: they stand and fall
// together.
func (v *Evidence) outlived() (breaches []string) {
	for _, h := range v.Holds {
		if lost := h.outermost().lapsed(); h.Last > lost {
			breaches = append(breaches, fmt.Sprintf("%s: %s was trusted %.1f ms after its nest was lost", h.Name, h.ID, 1000*seconds(h.Last-lost)))
		}
	}
	return breaches
}

// fences looks at whose fence it is: an inner lease has that of the outermost one, a degraded
// one has none, and is only for who has asked for that; all others have one.
func (v *Evidence) fences() (breaches []string) {
	breach := func(h *Hold, what string) {
		breaches = append(breaches, fmt.Sprintf("%s: %s (%s), with fence %d, %s", h.Name, h.ID, h.Mode, h.Fence, what))
	}
	for _, h := range v.Holds {
		switch {
		case h.Mode == Degraded && (h.Fence != 0 || !isLocal(h.Name)):
			breach(h, "is degraded")
		case h.Outer != nil && h.Fence != h.Outer.Fence:
			breach(h, fmt.Sprintf("is inside one with fence %d", h.Outer.Fence))
		case h.Mode != Degraded && h.Mode != Limited && h.Fence == 0:
			breach(h, "is not degraded")
		}
	}
	return breaches
}
