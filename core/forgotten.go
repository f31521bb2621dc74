package core

import (
	"context"
	"fmt"
	"path/filepath"
	"runtime"
	"strings"
)

// WithLeakDetection finds leases that were forgotten: nobody can release them any more, because the
// program has neither the *[Lease] nor a context of it. Such a lease is released at the next garbage
// collection, and the log and [Observer.Forgotten] say where it was acquired. Without it, the watchdog
// renews a forgotten lease as long as the process lives.
//
// It applies to Acquire, TryAcquire and Attach; Do and AcquireAll's names cannot be forgotten, except
// with the *[LeaseSet], which it does not find. Use it in tests and in production where the cost does
// not matter: some microseconds for each lease.
//
// It is off by default, because it changes what a lease means: work that holds a name to the end of
// the process, and keeps no variable for it, would lose the name while it runs. With it, keep the
// lease, or a context of it, for as long as the work runs.
func WithLeakDetection() NewOption {
	return newOptionFunc(func(c *config) { c.leaks = true })
}

// handle is what a caller gets for a lease. With WithLeakDetection it is a lease of its own, which only
// the caller and the contexts from its Context refer to. So when nobody has these any more, it is
// collected, although tenure and watchdog still have the real lease.
func (r *engine) handle(x *Lease, err error) (*Lease, error) {
	if err != nil || !r.leaks {
		return x, err
	}
	h := &Lease{inside: x}
	runtime.AddCleanup(h, func(f forgotten) { f.release() }, forgotten{x, callers()})
	return h, nil
}

// self is the lease that x stands for: x, or what a handle is for.
func (x *Lease) self() *Lease {
	if x != nil && x.tenure == nil && x.inside != nil {
		return x.inside
	}
	return x
}

// handleContext is a context from Context of a handle. Whoever has it can still find the handle.
type handleContext struct {
	context.Context

	handle *Lease
}

func (c *handleContext) Value(key any) any {
	if key == (leaseKey{}) {
		return c.handle
	}
	return c.Context.Value(key)
}

// forgotten is a lease whose handle was collected.
type forgotten struct {
	lease *Lease
	where [8]uintptr
}

// release gives the lease back, unless it has ended. Nobody waits for that.
func (f forgotten) release() {
	x := f.lease
	if x.over() {
		return
	}
	r := x.tenure.engine
	r.spawn(func() {
		if r.events != nil {
			r.events.add(r, ForgottenEvent{x.subject(), r.clock.Read().Up().Sub(x.since), f.place()})
		}
		_ = x.end(context.WithoutCancel(x.values), false) // told to observer and log
	})
}

func callers() (pcs [8]uintptr) {
	const self = 3 // Callers, callers, handle
	runtime.Callers(self, pcs[:])
	return pcs
}

// place is the first function outside of this package that has asked for the lease.
func (f forgotten) place() string {
	frames := runtime.CallersFrames(f.where[:])
	for {
		frame, more := frames.Next()
		if !strings.HasPrefix(frame.Function, "github.com/holdfast-go/holdfast/core.") || !more {
			return fmt.Sprintf("%s %s:%d", frame.Function, filepath.Base(frame.File), frame.Line)
		}
	}
}
