package core

import (
	"context"
	"sync/atomic"
	"time"
)

// leaseContext is a context that ends with its parent or with its lease. As long as nobody waits for its end, it costs nothing:
// the lease knows whether it has ended. The first call of Done, or the first Err that is not nil, makes one of the standard
// library, and from then on that one counts, so what was once said stays.
type leaseContext struct {
	lease  *Lease
	parent context.Context
	made   atomic.Pointer[madeContext]
}

// madeContext is the standard library's. Another one of those is between it and the caller's: the end of the lease,
// for which mutexes and the watchdog's tick wait, calls no method of the caller's context.
type madeContext struct {
	context.Context

	end    context.CancelCauseFunc
	unlink context.CancelFunc // takes it from the caller's; not with a mutex held
}

func (c *leaseContext) make() *madeContext {
	if m := c.made.Load(); m != nil {
		return m
	}
	under, unlink := context.WithCancel(c.parent)
	ctx, end := context.WithCancelCause(under)
	m := &madeContext{ctx, end, unlink}
	root := c.lease.root()
	root.mu.Lock()
	if first := c.made.Load(); first != nil {
		root.mu.Unlock()
		unlink()
		return first
	}
	c.made.Store(m)
	cause := c.lease.cause()
	root.mu.Unlock()
	if cause != nil {
		m.end(cause)
		unlink()
	}
	return m
}

func (c *leaseContext) ended() bool {
	root := c.lease.root()
	root.mu.Lock()
	defer root.mu.Unlock()
	return c.lease.cause() != nil
}

// Deadline is the parent's.
func (c *leaseContext) Deadline() (time.Time, bool) { return c.parent.Deadline() }

// Done implements context.Context.
func (c *leaseContext) Done() <-chan struct{} { return c.make().Done() }

// Err implements context.Context.
func (c *leaseContext) Err() error {
	if m := c.made.Load(); m != nil {
		return m.Err()
	}
	if !c.ended() && c.parent.Err() == nil {
		return nil
	}
	return c.make().Err()
}

// Value returns c itself for leaseKey, and the parent's value for all other keys. The standard library asks for its own
// contexts in this way: to attach children without a goroutine, and to learn the cause of an end. It calls Done or Err before that.
func (c *leaseContext) Value(key any) any {
	if key == (leaseKey{}) {
		return c
	}
	if m := c.made.Load(); m != nil {
		return m.Value(key)
	}
	return c.parent.Value(key)
}
