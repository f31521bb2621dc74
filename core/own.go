package core

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/contend"
	"github.com/holdfast-go/holdfast/core/internal/hold"
	"github.com/holdfast-go/holdfast/core/internal/queue"
)

// Own says what this process itself has to do with all names that begin with prefix: its leases, and
// its calls that wait, in the order of the names. "" is for all names. Only Name and Process are set.
//
// It asks nobody. So it also answers when the lock service does not, and it has what the lock service
// never sees: each waiting call, degraded leases, and when they began. A re-entry is part of the lease
// that it has joined. It looks at every lease of the process, so do not call it for each request.
func (l *Locker) Own(prefix string) []inspect.LeaseInfo {
	if l.none() {
		return nil
	}
	r := l.engine
	o := make(own)
	o.watched(r, func(name string) bool { return strings.HasPrefix(name, prefix) })
	o.waiting(r, r.room.Table.All(prefix))
	infos := make([]inspect.LeaseInfo, 0, len(o))
	for name, p := range o {
		infos = append(infos, inspect.LeaseInfo{Name: name, Process: sorted(p)})
	}
	slices.SortFunc(infos, func(a, b inspect.LeaseInfo) int { return strings.Compare(a.Name, b.Name) })
	return infos
}

// OwnOf is [Locker.Own] for one name. It looks at other names only if the process has ever used WithShared or WithLimit.
func (l *Locker) OwnOf(name string) inspect.ProcessInfo {
	if l.none() {
		return inspect.ProcessInfo{}
	}
	r := l.engine
	o, lines := make(own), r.room.Table.Of(name)
	if r.together.Load() {
		o.watched(r, func(other string) bool { return other == name })
	} else {
		for _, line := range lines {
			if line.Held {
				o.lease(line.Has)
			}
		}
	}
	o.waiting(r, lines)
	return sorted(o.of(name))
}

// Driver returns the backend that New was given, for package operate.
func (l *Locker) Driver() driver.Driver {
	if l.none() {
		return nil
	}
	return l.engine.driver
}

// own is what the process has to do with names.
type own map[string]*inspect.ProcessInfo

func (o own) of(name string) *inspect.ProcessInfo {
	if o[name] == nil {
		o[name] = &inspect.ProcessInfo{}
	}
	return o[name]
}

// sorted has the oldest ones first.
func sorted(p *inspect.ProcessInfo) inspect.ProcessInfo {
	slices.SortFunc(p.Leases, func(a, b inspect.OwnLease) int { return cmp.Compare(b.HeldFor, a.HeldFor) })
	slices.SortFunc(p.Waiters, func(a, b inspect.OwnWaiter) int { return cmp.Compare(b.Waited, a.Waited) })
	return *p
}

// watched adds the leases of the names that are wanted.
func (o own) watched(r *engine, wanted func(name string) bool) {
	for _, h := range r.room.Dog.All() {
		if wanted(h.Claim.Name) {
			o.lease(h)
		}
	}
}

// waiting adds the calls that wait in the lines.
func (o own) waiting(r *engine, lines []queue.Seen[contend.Waiting, *hold.Hold]) {
	now := r.clock.Now()
	for _, line := range lines {
		for _, w := range line.Wait {
			x := (*Lease)(w.Want.Work.(*work)) //nolint:forcetypeassert // want has set it
			p := o.of(x.want.Name)
			p.Waiters = append(p.Waiters, inspect.OwnWaiter{Label: x.cfg.Label, Template: x.cfg.template, Waited: now.Sub(w.Began)})
		}
	}
}

// lease adds the lease whose turn of h it is. It reads the hold: what a lease knows of itself is there only once its
// caller has it.
func (o own) lease(h *hold.Hold) {
	x := leaseUnder(h)
	now, turn := x.engine.clock.Read(), h.Term()
	of := inspect.OwnLease{
		Label: x.cfg.Label, Template: x.cfg.template, Kind: inspect.HoldExclusive, Fence: turn.Fence(),
		HeldFor: now.Up().Sub(turn.Begun()), Remaining: h.Remaining(now.Awake()),
	}
	switch {
	case h.Claim.Outage() != nil:
		of.Kind = inspect.HoldDegraded
	case x.cfg.Limit == driver.Readers:
		of.Kind = inspect.HoldShared
	case x.cfg.Limit > 1:
		of.Kind = inspect.HoldLimited
	}
	p := o.of(x.want.Name)
	p.Leases = append(p.Leases, of)
}
