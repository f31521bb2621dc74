//go:build linux

package weather

import (
	"slices"
)

// The steps of a split, after the cut.
const (
	promoted = "promoted" // there are two masters
	joined   = "joined"   // the servers meet again, and the workers that were cut off
	demoted  = "demoted"  // the old master is none any more
)

// Split is a time in which a service had two masters.
type Split struct {
	Cut                           []string // the workers that stayed with the old one
	At, Promoted, Joined, Demoted int64
}

// splits are those that came to two masters.
func splits(events []Event) (all []Split) {
	open := make(map[string]*Split)
	for _, e := range events {
		s := open[e.ID]
		switch {
		case e.Kind == Faulted && e.Fault == "split":
			open[e.ID] = &Split{Cut: e.Cut, At: e.At}
		case e.Kind != Turned:
		case e.Class == promoted:
			s.Promoted = e.At
		case e.Class == joined:
			s.Joined = e.At
		case e.Class == demoted:
			s.Demoted = e.At
			all = append(all, *s)
		}
	}
	return all
}

// forgetful says whether the service may grant what a failover then forgets.
func (v *Evidence) forgetful() bool { return v.Service == Cluster || v.Service == Sentinel }

// torn says whether two leases may be of two masters that stood side by side. A grant of the
// old one is worth nothing to the new one, and its fences are made from its own clock.
func (v *Evidence) torn(a, b *Hold) bool {
	return v.forgetful() && slices.ContainsFunc(v.Splits, func(s Split) bool {
		return s.mayBeOld(a) && s.mayBeNew(b) || s.mayBeOld(b) && s.mayBeNew(a)
	})
}

func (v *Evidence) tornByID(a, b string) bool {
	find := func(id string) *Hold {
		if i := slices.IndexFunc(v.Holds, func(h *Hold) bool { return h.ID == id }); i >= 0 {
			return v.Holds[i]
		}
		return new(Hold)
	}
	return v.torn(find(a), find(b))
}

// mayBeOld says whether a lease may be of the master that was cut off. That one grants and renews
// nothing once it is demoted: what it has granted is trusted for a TTL more.
func (s Split) mayBeOld(h *Hold) bool {
	return s.isCut(h.Worker) && h.Asked < s.Demoted && s.At < h.Last && h.Last < s.Demoted+int64(TTL)
}

// mayBeNew says whether a lease may be of the master that was promoted. A worker that was cut off
// does not reach that one before the servers meet again.
func (s Split) mayBeNew(h *Hold) bool {
	return h.Answered > s.Promoted && (!s.isCut(h.Worker) || h.Answered > s.Joined)
}

func (s Split) isCut(life string) bool {
	return slices.ContainsFunc(s.Cut, func(worker string) bool { return isOf(life, worker) })
}

// strandedAt says whether what a worker then had of a lease may have been at a master that was
// given up: no part of the history that goes on.
func (v *Evidence) strandedAt(h *Hold, at int64) bool {
	return v.forgetful() && slices.ContainsFunc(v.Splits, func(s Split) bool {
		return s.isCut(h.Worker) && h.Asked < s.Demoted && s.At <= at
	})
}

// rewound says whether another master took over between two leases. It may have a reader's grant that had
// ended at the old one, whose fence all readers share who come before it expires, and not know of those
// after it.
func (v *Evidence) rewound(a, b *Hold) bool {
	from, to := min(a.Asked, b.Asked), max(a.Answered, b.Answered)
	return v.forgetful() && slices.ContainsFunc(v.takeovers(), func(s span) bool { return s.from < to && from < s.to })
}

// takeovers are when another master may have lost even what is not waited for: what a release
// leaves behind.
func (v *Evidence) takeovers() []span {
	all := slices.Clone(v.changes)
	for _, s := range v.Splits {
		all = append(all, span{s.At, s.Demoted})
	}
	return all
}
