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

// FenceFromContext returns the fence of the innermost lease that ctx stands under. It is
// false if there is no lease, or one without a fence.
func FenceFromContext(ctx context.Context) (uint64, bool) {
	x, ok := FromContext(ctx)
	if !ok {
		return 0, false
	}
	fence := x.Fence()
	return fence, fence > 0
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
