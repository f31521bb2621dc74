package core

import "github.com/holdfast-go/holdfast/core/driver"

// holders are the tenures of this process, by name. The mutex of names protects them.
type holders struct {
	alone  map[string]*tenure // tenures by which this process alone has the name, until their release is over
	beside map[string]int     // how many other tenures there are: those that leave the name to others too, or that came by a hand-off
	locals int                // how many of alone are degraded
}

// holding says where in holders a tenure is.
type holding uint8

const (
	holdsNothing holding = iota
	holdsAlone
	holdsBeside
)

// occupy puts t into the table. A tenure that is alone takes the place of one whose release has no answer
// yet. The caller holds the mutex.
func (h *holders) occupy(t *tenure, as holding) {
	name := t.token.name
	if t.holds = as; as == holdsBeside {
		h.beside[name]++
		return
	}
	if old := h.alone[name]; old != nil {
		h.vacate(old)
	}
	if t.local {
		h.locals++
	}
	h.alone[name] = t
}

// vacate takes t out, and says where it was. The caller holds the mutex.
func (h *holders) vacate(t *tenure) (was holding) {
	name := t.token.name
	switch was = t.holds; was {
	case holdsAlone:
		delete(h.alone, name)
		if t.local {
			h.locals--
		}
	case holdsBeside:
		if h.beside[name]--; h.beside[name] == 0 {
			delete(h.beside, name)
		}
	case holdsNothing:
	}
	t.holds = holdsNothing
	return was
}

// held says which tenure of this process alone has the name. Its Remaining is 0 if the tenure is no
// longer trusted but not yet over. A key that is not a name has no holder. The caller holds the
// mutex.
func (h *holders) held(name string) *driver.Held {
	if t := h.alone[name]; t != nil {
		return &driver.Held{Label: t.cfg.label, Remaining: t.left()}
	}
	return nil
}

// degraded is held for a degraded lease. The caller holds the mutex.
func (h *holders) degraded(name string) *driver.Held {
	if h.locals == 0 {
		return nil
	}
	if t := h.alone[name]; t != nil && t.local {
		return h.held(name)
	}
	return nil
}
