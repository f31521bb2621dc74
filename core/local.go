package core

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/clock"
)

// ProcessInfo is what this process itself has to do with a name.
type ProcessInfo = driver.ProcessInfo

// OwnLease is a lease of this process.
type OwnLease = driver.OwnLease

// OwnWaiter is a call of this process that waits.
type OwnWaiter = driver.OwnWaiter

// Own says what this process itself has to do with all names that begin with prefix: its leases, and
// its calls that wait, in the order of the names. "" is for all names. Only Name and Process are set.
//
// It asks nobody. So it also answers when the lock service does not, and it has what the lock service
// never sees: each waiting call, degraded leases, and when they began. A re-entry is part of the lease
// that it has joined. It looks at every lease of the process, so do not call it for each request.
func (l *Locker) Own(prefix string) []LeaseInfo {
	if l.none() {
		return nil
	}
	found := l.engine.own(func(name string) bool { return strings.HasPrefix(name, prefix) })
	infos := make([]LeaseInfo, 0, len(found))
	for name, own := range found {
		infos = append(infos, LeaseInfo{Name: name, Process: *own})
	}
	slices.SortFunc(infos, func(a, b LeaseInfo) int { return strings.Compare(a.Name, b.Name) })
	return infos
}

// own collects the leases and waiters of the names that are wanted.
func (r *engine) own(wanted func(name string) bool) map[string]*ProcessInfo {
	return r.describe(r.watchdog.tenures(), wanted)
}

// ownOf is own for one name. It looks at every lease of the process only if the name is shared.
func (r *engine) ownOf(name string) ProcessInfo {
	tenures, several := r.names.tenuresOf(name)
	if several {
		tenures = r.watchdog.tenures()
	}
	if p := r.describe(tenures, func(other string) bool { return other == name })[name]; p != nil {
		return *p
	}
	return ProcessInfo{}
}

func (r *engine) describe(tenures []*tenure, wanted func(name string) bool) map[string]*ProcessInfo {
	found := make(map[string]*ProcessInfo)
	of := func(name string) *ProcessInfo {
		if found[name] == nil {
			found[name] = &ProcessInfo{}
		}
		return found[name]
	}
	for _, t := range tenures {
		if !wanted(t.token.name) {
			continue
		}
		if own, held := t.own(r.clock.Read()); held {
			p := of(t.token.name)
			p.Leases = append(p.Leases, own)
		}
	}
	for _, w := range r.names.waiters(wanted) {
		p := of(w.name)
		p.Waiters = append(p.Waiters, OwnWaiter{Label: w.cfg.label, Template: w.cfg.template, Waited: time.Since(w.call.began)})
	}
	for _, p := range found {
		slices.SortFunc(p.Leases, func(a, b OwnLease) int { return cmp.Compare(b.HeldFor, a.HeldFor) })
		slices.SortFunc(p.Waiters, func(a, b OwnWaiter) int { return cmp.Compare(b.Waited, a.Waited) })
	}
	return found
}

// own describes the tenure's turn. It is not held any more while its release is under way.
func (t *tenure) own(now clock.Reading) (own OwnLease, held bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.state != tenureHeld && t.state != tenureExpelled {
		return own, false
	}
	x := t.first
	own = OwnLease{
		Label: t.cfg.label, Template: x.cfg.template, Kind: driver.HoldExclusive, Fence: t.fenceOf(t.turn),
		HeldFor: now.Up().Sub(x.since), Remaining: t.leftAt(now),
	}
	switch {
	case t.local:
		own.Kind = driver.HoldDegraded
	case t.shared():
		own.Kind = driver.HoldShared
	case t.cfg.limit > 1:
		own.Kind = driver.HoldLimited
	}
	return own, true
}

// tenures returns all tenures that are scheduled: those whose leases may still be trusted. The few that
// are being looked at just now are missing.
func (k *watchdog) tenures() []*tenure {
	k.mu.Lock()
	defer k.mu.Unlock()
	all := make([]*tenure, len(k.schedule))
	for i, s := range k.schedule {
		all[i] = s.tenure
	}
	return all
}

// tenuresOf returns the tenure that alone has the name, and says whether there are others.
func (s *names) tenuresOf(name string) (alone []*tenure, several bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.holders.alone[name]; t != nil {
		alone = []*tenure{t}
	}
	return alone, s.holders.beside[name] > 0
}

// waiterInfo is a waiter of a name.
type waiterInfo struct {
	*waiter
	name string
}

// waiters returns all calls that wait in a queue for a name that is wanted.
func (s *names) waiters(wanted func(name string) bool) (all []waiterInfo) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for key, q := range s.queues {
		name, _, _ := strings.Cut(key, "\x00")
		if !wanted(name) {
			continue
		}
		for w := q.head; w != nil; w = w.next {
			all = append(all, waiterInfo{w, name})
		}
	}
	return all
}
