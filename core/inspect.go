package core

import (
	"context"
	"errors"
	"iter"
	"strings"

	"github.com/holdfast-go/holdfast/core/driver"
)

// LeaseInfo is what the lock service knows of a name: who holds it, for how long, and who waits in
// its queue. Process has what this process itself knows: its leases, and each of its waiting calls. It
// has no token.
type LeaseInfo = driver.LeaseInfo

// HolderInfo is one of several holders of a name.
type HolderInfo = driver.HolderInfo

// WaiterInfo is one process in the queue for a name.
type WaiterInfo = driver.WaiterInfo

// NodeInfo is what one node of a quorum says of a name: see core/redlock.
type NodeInfo = driver.NodeInfo

// MarkerInfo is a dedup marker.
type MarkerInfo = driver.MarkerInfo

// HoldKind says how a name is held: see [LeaseInfo].
type HoldKind = driver.HoldKind

// The kinds of a [LeaseInfo].
const (
	HoldExclusive = driver.HoldExclusive
	HoldShared    = driver.HoldShared
	HoldLimited   = driver.HoldLimited
	HoldKept      = driver.HoldKept
	HoldHandoff   = driver.HoldHandoff
	HoldForeign   = driver.HoldForeign
	HoldDegraded  = driver.HoldDegraded
)

// Inspect says who holds a name now, in any process, and who waits for it in the backend's queue.
// It is for people and dashboards. The answer may be out of date when you read it, so do not use it
// to decide whether to do something.
//
// ctx limits it. It returns [ErrInvalid] if the backend cannot tell, and [ErrUnavailable].
func (l *Locker) Inspect(ctx context.Context, name string) (LeaseInfo, error) {
	i, err := l.inspector()
	if err != nil {
		return LeaseInfo{}, err
	}
	if err := l.engine.checkName(name); err != nil {
		return LeaseInfo{}, err
	}
	info, err := i.Inspect(ctx, name)
	if err == nil {
		info = withOwn(info, l.engine.ownOf(name))
	}
	return info, inspected(ctx, "inspect", name, err)
}

// withOwn adds to what the backend knows what this process knows. A degraded lease is held only here.
func withOwn(info LeaseInfo, own ProcessInfo) LeaseInfo {
	info.Process = own
	if len(own.Leases) == 1 && own.Leases[0].Kind == HoldDegraded && !info.Held {
		x := own.Leases[0]
		info.Held, info.Kind, info.Label, info.HeldFor = true, HoldDegraded, x.Label, x.HeldFor
	}
	return info
}

// Leases is [Locker.Inspect] for all names that are held and begin with prefix, in no order. "" is
// for all names. It asks in small steps, so that it keeps nobody from the lock service. So it is no
// snapshot: a name that comes or goes meanwhile may be missing, and a name may come twice. If there
// is an error, it comes last.
func (l *Locker) Leases(ctx context.Context, prefix string) iter.Seq2[LeaseInfo, error] {
	return func(yield func(LeaseInfo, error) bool) {
		i, err := l.inspector()
		if err != nil {
			yield(LeaseInfo{}, err)
			return
		}
		own := l.engine.own(func(name string) bool { return strings.HasPrefix(name, prefix) })
		for info, err := range i.Leases(ctx, prefix) {
			if p := own[info.Name]; p != nil && err == nil {
				info = withOwn(info, *p)
				p.Leases = nil // below, only those follow that the backend does not know
			}
			if !yield(info, inspected(ctx, "list", prefix, err)) || err != nil {
				return
			}
		}
		for name, p := range own {
			if info := withOwn(LeaseInfo{Name: name}, *p); info.Held && !yield(info, nil) {
				return
			}
		}
	}
}

// Markers lists the dedup markers of all names that begin with prefix, in no order: what [WithDedup]
// counts as done, and for how long. "" is for all names. As [Locker.Leases], it is no snapshot, and an
// error comes last. It returns [ErrInvalid] if the backend cannot tell.
func (l *Locker) Markers(ctx context.Context, prefix string) iter.Seq2[MarkerInfo, error] {
	return func(yield func(MarkerInfo, error) bool) {
		i, err := l.markers()
		if err != nil {
			yield(MarkerInfo{}, err)
			return
		}
		for info, err := range i.Markers(ctx, prefix) {
			if !yield(info, inspected(ctx, "list", prefix, err)) || err != nil {
				return
			}
		}
	}
}

// RemoveMarker removes the dedup marker of a name and scope, as [Locker.Markers] shows them, so that
// the work can be done again. It is for operators. Work that is under way is not stopped.
//
// removed says whether there was one. ctx limits the call. The errors are [ErrUnavailable], also if it
// is not known whether the marker was removed, and [ErrInvalid] if the backend cannot do it.
func (l *Locker) RemoveMarker(ctx context.Context, name, scope string) (removed bool, err error) {
	i, err := l.markers()
	if err != nil {
		return false, err
	}
	if err := l.engine.checkName(name); err != nil {
		return false, err
	}
	if err := checkText("scope", scope, maxScope); err != nil {
		return false, err
	}
	err = i.Unmark(ctx, name, scope)
	if errors.Is(err, driver.ErrNotOwner) {
		return false, nil
	}
	return err == nil, inspected(ctx, "remove marker", name, err)
}

func (l *Locker) markers() (driver.MarkerInspector, error) {
	if l.none() {
		return nil, errNoLocker
	}
	i, ok := l.engine.driver.(driver.MarkerInspector)
	if !ok {
		return nil, lacks(l.engine.can, "inspecting markers")
	}
	return i, nil
}

// ForceRelease takes a name from one holder, in whatever process, by its handle: [Locker.Inspect] shows one
// for every holder, from the grant on. Each of several readers or holders of a semaphore has its own, and so
// has a name that a release has left taken. Nobody else loses the name by it. It is for operators.
// [WithMaxHold] is the better way.
//
// The old holder learns of it by its next renewal, with [ReasonTaken]. Until then it works on,
// beside the next holder; only a resource that checks fences refuses its writes.
//
// A handle stands for one grant of the backend. A goroutine of the same process that is given a turn within the
// first 5 ms has the same handle. The next grant has another one.
//
// freed says whether the name was freed; it is false if nobody holds it. The error is a *[HeldError] if only
// holders with other handles have the name. It is [ErrInvalid] for an empty handle, and if the backend
// cannot do it. It is [ErrUnavailable] if the backend could not answer, or if it is not known
// whether the release took effect. ctx limits the call.
func (l *Locker) ForceRelease(ctx context.Context, name, handle string) (freed bool, err error) {
	if handle == "" {
		return false, invalidf("force release of %q: no handle; Inspect shows that of each holder", name)
	}
	i, err := l.inspector()
	if err != nil {
		return false, err
	}
	if err := l.engine.checkName(name); err != nil {
		return false, err
	}
	err = i.Evict(ctx, name, handle)
	if held, ok := errors.AsType[*driver.Held](err); ok {
		return false, &HeldError{Name: name, Label: held.Label, RetryAfter: held.Remaining}
	}
	if errors.Is(err, driver.ErrNotOwner) {
		return false, nil
	}
	return err == nil, inspected(ctx, "force release", name, err)
}

func (l *Locker) inspector() (driver.Inspector, error) {
	if l.none() {
		return nil, errNoLocker
	}
	i, ok := l.engine.driver.(driver.Inspector)
	if !ok {
		return nil, lacks(l.engine.can, "inspecting")
	}
	return i, nil
}

func inspected(ctx context.Context, op, name string, err error) error {
	if err == nil {
		return nil
	}
	err = &unavailableError{op, name, opaque(err)}
	if ctx.Err() != nil {
		return &endedError{ctx.Err(), err}
	}
	return err
}
