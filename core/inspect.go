package core

import (
	"context"
	"errors"
	"iter"

	"github.com/holdfast-go/holdfast/core/driver"
)

// LeaseInfo is what the lock service knows of a name: who holds it, for how long, and who
// stands in line. It has no token.
type LeaseInfo = driver.LeaseInfo

// HolderInfo is one of several who hold a name together.
type HolderInfo = driver.HolderInfo

// WaiterInfo is one process in the line for a name.
type WaiterInfo = driver.WaiterInfo

// Inspect says who holds a name now, in whatever process, and who stands in line for it
// there. It is for people and dashboards: by the time it is read, it may be over, so it is no
// way to find out whether to do something.
//
// ctx bounds it. It returns [ErrInvalid] for a backend that cannot tell, and
// [ErrUnavailable].
func (l *Locker) Inspect(ctx context.Context, name string) (LeaseInfo, error) {
	i, err := l.inspector()
	if err != nil {
		return LeaseInfo{}, err
	}
	if err := l.engine.checkName(name); err != nil {
		return LeaseInfo{}, err
	}
	info, err := i.Inspect(ctx, name)
	return info, inspected(ctx, "inspect", name, err)
}

// Leases is [Locker.Inspect] for all names that are held and begin with prefix, "" for all,
// in no order. It asks in small steps, which keep nobody from the lock service, and so is no
// snapshot: what comes and goes meanwhile may be missing, and a name may come twice. An error
// is the last that comes.
func (l *Locker) Leases(ctx context.Context, prefix string) iter.Seq2[LeaseInfo, error] {
	return func(yield func(LeaseInfo, error) bool) {
		i, err := l.inspector()
		if err != nil {
			yield(LeaseInfo{}, err)
			return
		}
		for info, err := range i.Leases(ctx, prefix) {
			if !yield(info, inspected(ctx, "list", prefix, err)) || err != nil {
				return
			}
		}
	}
}

// ForceRelease takes a name from its holder, who may be anybody, if it is held with exactly
// this fence, as [Locker.Inspect] shows it: so it cannot hit a holder who came since. It is
// for an operator whose patience with a holder is over. The holder is told by its next
// renewal, [ReasonTaken], and works on until then, beside the next one: only a resource that
// checks fences refuses it. [WithMaxHold] is the better way.
//
// A fence that is not known is not shown, as where a lease was never renewed, and readers share
// one: then there is [Locker.ForceReleaseHandle].
//
// It says whether it has freed the name; it has not if nobody holds it. The error is a
// *[HeldError] if the name is held with another fence, or with one that the lock service does
// not know; [ErrInvalid] for fence 0, for one that several readers have, and for a backend that cannot
// do it; and [ErrUnavailable], also where whether it took effect is unknown. ctx bounds it.
func (l *Locker) ForceRelease(ctx context.Context, name string, fence uint64) (freed bool, err error) {
	if fence == 0 {
		return false, invalidf("fence: 0")
	}
	return l.evict(ctx, name, driver.Holder{Fence: fence})
}

// ForceReleaseHandle is [Locker.ForceRelease] by the handle that [Locker.Inspect] shows of every holder,
// from the grant on: of each of those who share a name, or hold it as a limited number, and of a name
// that a release has left taken. It takes the name from that holder alone.
//
// A handle stands for the tenure: a turn of it that a goroutine of the same process is given within the
// first 5 ms, and before the first renewal, has the same one. Whoever gets the name after that has another.
//
// The errors are the same; the empty handle is [ErrInvalid].
func (l *Locker) ForceReleaseHandle(ctx context.Context, name, handle string) (freed bool, err error) {
	if handle == "" {
		return false, invalidf("handle: empty")
	}
	return l.evict(ctx, name, driver.Holder{Handle: handle})
}

func (l *Locker) evict(ctx context.Context, name string, h driver.Holder) (freed bool, err error) {
	i, err := l.inspector()
	if err != nil {
		return false, err
	}
	if err := l.engine.checkName(name); err != nil {
		return false, err
	}
	err = i.Evict(ctx, name, h)
	if held, ok := errors.AsType[*driver.Held](err); ok {
		return false, &HeldError{Name: name, Label: held.Label, RetryAfter: held.Remaining}
	}
	switch {
	case errors.Is(err, driver.ErrNotOwner):
		return false, nil
	case errors.Is(err, driver.ErrSeveral):
		return false, invalidf("fence %d of %q: several readers have it; ForceReleaseHandle takes the name from one of them", h.Fence, name)
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
