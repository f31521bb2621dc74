package core

import (
	"cmp"
	"slices"
	"strings"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/internal/contend"
	"github.com/holdfast-go/holdfast/core/internal/hold"
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
	found := l.engine.own(func(name string) bool { return strings.HasPrefix(name, prefix) })
	infos := make([]inspect.LeaseInfo, 0, len(found))
	for name, own := range found {
		infos = append(infos, inspect.LeaseInfo{Name: name, Process: *own})
	}
	slices.SortFunc(infos, func(a, b inspect.LeaseInfo) int { return strings.Compare(a.Name, b.Name) })
	return infos
}

// OwnOf is [Locker.Own] for one name.
func (l *Locker) OwnOf(name string) inspect.ProcessInfo {
	if !l.none() {
		if own := l.engine.own(func(other string) bool { return other == name })[name]; own != nil {
			return *own
		}
	}
	return inspect.ProcessInfo{}
}

// Driver returns the backend that New was given, for package operate.
func (l *Locker) Driver() driver.Driver {
	if l.none() {
		return nil
	}
	return l.engine.driver
}

// own collects the leases and waiters of the names that are wanted. It holds no mutex for long.
func (r *engine) own(wanted func(name string) bool) map[string]*inspect.ProcessInfo {
	found := make(map[string]*inspect.ProcessInfo)
	of := func(name string) *inspect.ProcessInfo {
		if found[name] == nil {
			found[name] = &inspect.ProcessInfo{}
		}
		return found[name]
	}
	for _, w := range r.dog.All() {
		h := w.(*hold.Hold) //nolint:forcetypeassert // nothing else is watched
		if name := h.Claim.Name; wanted(name) {
			if own, held := leaseUnder(h).describe(); held {
				p := of(name)
				p.Leases = append(p.Leases, own)
			}
		}
	}
	now := r.clock.Now()
	r.room.Table.Each(func(line string) bool { return wanted(contend.Name(line)) }, func(line string, w *contend.Waiting) {
		x := (*Lease)(w.Want.Work.(*work)) //nolint:forcetypeassert // want has set it
		p := of(contend.Name(line))
		p.Waiters = append(p.Waiters, inspect.OwnWaiter{Label: x.cfg.label, Template: x.cfg.template, Waited: now.Sub(w.Began)})
	})
	for _, p := range found {
		slices.SortFunc(p.Leases, func(a, b inspect.OwnLease) int { return cmp.Compare(b.HeldFor, a.HeldFor) })
		slices.SortFunc(p.Waiters, func(a, b inspect.OwnWaiter) int { return cmp.Compare(b.Waited, a.Waited) })
	}
	return found
}

// describe describes a root, unless it has ended.
func (x *Lease) describe() (own inspect.OwnLease, held bool) {
	x.mu.Lock()
	over := x.freed || x.open == 0 || x.loss != nil && x.loss.Reason != ReasonMaxHold
	x.mu.Unlock()
	own = inspect.OwnLease{
		Label: x.cfg.label, Template: x.cfg.template, Kind: inspect.HoldExclusive, Fence: x.Fence(),
		HeldFor: x.held(), Remaining: x.hold.Remaining(x.engine.clock.Now()),
	}
	switch {
	case x.Degraded():
		own.Kind = inspect.HoldDegraded
	case x.cfg.shared:
		own.Kind = inspect.HoldShared
	case x.cfg.limit > 1:
		own.Kind = inspect.HoldLimited
	}
	return own, !over
}
