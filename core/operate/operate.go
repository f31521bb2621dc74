// Package operate is for those who run a service: it says who holds which names, and who waits for them, and it takes names away.
// Its answers may be out of date when you read them, so do not use them to decide whether to do something.
//
//	info, err := operate.New(locks).Inspect(ctx, "order:42")
//
// An [Operator] asks the backend of a [core.Locker], and adds what the process knows itself. Its methods return [core.ErrInvalid] if the
// backend cannot tell, or if a name cannot be one, and [core.ErrUnavailable] if the backend did not answer. ctx
// limits each call. Nothing is repeated.
package operate

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/driver/inspect"
	"github.com/holdfast-go/holdfast/core/key"
)

// Operator looks at the names of a Locker's backend.
type Operator struct{ locks *core.Locker }

// New returns the Operator of a Locker.
func New(l *core.Locker) Operator { return Operator{l} }

// Inspect says who holds a name now, in any process, and who waits for it in the backend's queue.
func (o Operator) Inspect(ctx context.Context, name string) (inspect.LeaseInfo, error) {
	i, err := about[inspect.Inspector](o.locks, name)
	if err != nil {
		return inspect.LeaseInfo{}, err
	}
	info, err := i.Inspect(ctx, name)
	return withOwn(info, o.locks.OwnOf(name)), failed(ctx, "inspect", name, err)
}

// withOwn adds to what the backend knows what this process knows. A degraded lease is held only here.
func withOwn(info inspect.LeaseInfo, own inspect.ProcessInfo) inspect.LeaseInfo {
	info.Process = own
	if len(own.Leases) == 1 && own.Leases[0].Kind == inspect.HoldDegraded && !info.Held {
		x := own.Leases[0]
		info.Held, info.Kind, info.Label, info.HeldFor = true, inspect.HoldDegraded, x.Label, x.HeldFor
	}
	return info
}

// Leases is [Operator.Inspect] for all names that are held and begin with prefix, in no order. "" is
// for all names. It asks in small steps, so that it keeps nobody from the lock service. So it is no
// snapshot: a name that comes or goes meanwhile may be missing, and a name may come twice. If there
// is an error, it comes last.
func (o Operator) Leases(ctx context.Context, prefix string) iter.Seq2[inspect.LeaseInfo, error] {
	return func(yield func(inspect.LeaseInfo, error) bool) {
		i, err := as[inspect.Inspector](o.locks)
		if err != nil {
			yield(inspect.LeaseInfo{}, err)
			return
		}
		own := make(map[string]inspect.ProcessInfo)
		for _, x := range o.locks.Own(prefix) {
			own[x.Name] = x.Process
		}
		known := make(map[string]bool)
		for info, err := range i.Leases(ctx, prefix) {
			info = withOwn(info, own[info.Name])
			known[info.Name] = true
			if !yield(info, failed(ctx, "list", prefix, err)) || err != nil {
				return
			}
		}
		for name, p := range own {
			if info := withOwn(inspect.LeaseInfo{Name: name}, p); info.Held && !known[name] && !yield(info, nil) {
				return
			}
		}
	}
}

// Markers lists the dedup markers of all names that begin with prefix, in no order: what [core.WithDedup]
// counts as done, and for how long. "" is for all names. As [Operator.Leases], it is no snapshot, and an
// error comes last.
func (o Operator) Markers(ctx context.Context, prefix string) iter.Seq2[inspect.MarkerInfo, error] {
	return func(yield func(inspect.MarkerInfo, error) bool) {
		i, err := as[inspect.MarkerInspector](o.locks)
		if err != nil {
			yield(inspect.MarkerInfo{}, err)
			return
		}
		for info, err := range i.Markers(ctx, prefix) {
			if !yield(info, failed(ctx, "list", prefix, err)) || err != nil {
				return
			}
		}
	}
}

// RemoveMarker removes the dedup marker of a name and scope, as [Operator.Markers] shows them, so that
// the work can be done again. Work that is under way is not stopped. removed says whether there was
// one. The error is core.ErrUnavailable also if it is not known whether the marker was removed.
func (o Operator) RemoveMarker(ctx context.Context, name, scope string) (removed bool, err error) {
	i, err := about[inspect.MarkerInspector](o.locks, name)
	if err != nil {
		return false, err
	}
	if _, err := o.locks.With(core.WithDedupScope(scope)); err != nil {
		return false, err
	}
	err = i.Unmark(ctx, name, scope)
	if errors.Is(err, driver.ErrNotOwner) {
		return false, nil
	}
	return err == nil, failed(ctx, "remove marker", name, err)
}

// ForceRelease takes a name from one holder, in whatever process, by its handle: [Operator.Inspect] shows one
// for every holder, from the grant on. Each of several readers or holders of a semaphore has its own, and so
// has a name that a release has left taken. Nobody else loses the name by it. [core.WithMaxHold] is the better way.
//
// The old holder learns of it by its next renewal, with [core.ReasonTaken]. Until then it works on,
// beside the next holder; only a resource that checks fences refuses its writes.
//
// A handle stands for one grant of the backend. A goroutine of the same process that is given a turn within the
// first 5 ms has the same handle. The next grant has another one.
//
// freed says whether the name was freed; it is false if nobody holds it. The error is a *[core.HeldError] if only
// holders with other handles have the name, and core.ErrInvalid for an empty handle. It is core.ErrUnavailable also if it is not known
// whether the release took effect.
func (o Operator) ForceRelease(ctx context.Context, name, handle string) (freed bool, err error) {
	if handle == "" {
		return false, fmt.Errorf("%w: force release of %q: no handle; Inspect shows that of each holder", core.ErrInvalid, name)
	}
	i, err := about[inspect.Inspector](o.locks, name)
	if err != nil {
		return false, err
	}
	err = i.Evict(ctx, name, handle)
	if held, ok := errors.AsType[*driver.Held](err); ok {
		return false, &core.HeldError{Name: name, Label: held.Label, RetryAfter: held.Remaining}
	}
	if errors.Is(err, driver.ErrNotOwner) {
		return false, nil
	}
	return err == nil, failed(ctx, "force release", name, err)
}

// as is what can be asked of l's backend: of the innermost one, if one stands around another.
func as[I any](l *core.Locker) (i I, err error) {
	d := l.Driver()
	if d == nil {
		return i, fmt.Errorf("%w: Locker: nil, or not made by New", core.ErrInvalid)
	}
	can := d.Capabilities()
	for {
		if i, ok := d.(I); ok {
			return i, nil
		}
		around, ok := d.(interface{ Unwrap() driver.Driver })
		if !ok {
			return i, fmt.Errorf("%w: the %s backend cannot do this: inspecting", core.ErrInvalid, can.Backend)
		}
		d = around.Unwrap()
	}
}

// about is as, for one name.
func about[I any](l *core.Locker, name string) (i I, err error) {
	if i, err = as[I](l); err != nil {
		return i, err
	}
	if can := l.Driver().Capabilities(); can.MaxName > 0 && len(name) > can.MaxName {
		return i, fmt.Errorf("%w: name: %d bytes, and the %s backend takes %d", core.ErrInvalid, len(name), can.Backend, can.MaxName)
	}
	return i, key.CheckName(name)
}

// failed is the error of a question.
func failed(ctx context.Context, op, name string, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) { // of the backend's own
		err = errNoAnswer
	}
	err = &unavailable{op, name, err}
	if ctx.Err() != nil {
		return fmt.Errorf("%w (%w)", err, ctx.Err())
	}
	return err
}

var errNoAnswer = errors.New("no answer in time")

// unavailable is core.ErrUnavailable with the backend's reason.
type unavailable struct {
	op, name string
	err      error
}

func (e *unavailable) Error() string {
	text := fmt.Sprintf("holdfast: %s %q: lock service unavailable: %v", e.op, e.name, e.err)
	if why := driver.Reason(e.err); !strings.Contains(text, why) {
		text += ": " + why
	}
	return text
}

func (e *unavailable) Is(target error) bool { return target == core.ErrUnavailable }

func (e *unavailable) Unwrap() error { return e.err }

// ErrorType returns "unavailable", as that of core's errors.
func (e *unavailable) ErrorType() string { return "unavailable" }
