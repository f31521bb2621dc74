package core

import "context"

type leaseKey struct{}

// FromContext returns the innermost lease that ctx stands under: the context of Do,
// DoValue, Wrap and the doors, of [Lease.Context], and of everything derived from them.
// The lease may have ended since; [Lease.Err] tells.
func FromContext(ctx context.Context) (*Lease, bool) {
	x, ok := ctx.Value(leaseKey{}).(*Lease)
	return x, ok
}

// FenceFor returns the fencing token of the lease of name that ctx stands under: of the innermost one,
// also where locks are nested. It is never 0 without an error. The error is [ErrInvalid] if ctx stands under
// no lease of name, or that has no fence, as where it is one of a semaphore or the backend mints none; and
// [ErrUnavailable] if it is [Lease.Degraded].
func FenceFor(ctx context.Context, name string) (uint64, error) {
	x, _ := FromContext(ctx)
	for x != nil && x.name != name {
		x = x.outer
	}
	switch {
	case x == nil:
		return 0, invalidf("fence of %q: the context stands under no lease of that name", name)
	case x.tenure.local:
		return 0, &unavailableError{"fence", name, errDegraded}
	case x.Fence() == 0:
		return 0, invalidf("fence of %q: it has none, as it is of a semaphore, or the %s backend mints none", name, x.tenure.engine.can.Backend)
	default:
		return x.Fence(), nil
	}
}

// leaseContext is a context that knows its lease.
type leaseContext struct {
	context.Context // made by context.WithCancelCause, so that children attach to it directly
	lease           *Lease
	end             context.CancelCauseFunc
}

// Value answers for the lease, and else for the parent.
func (c *leaseContext) Value(key any) any {
	if key == (leaseKey{}) {
		return c.lease
	}
	return c.Context.Value(key)
}
