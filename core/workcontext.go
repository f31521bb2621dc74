package core

import (
	"context"
	"fmt"
)

// work is for a call that was given x: the observer may add to the context of the work. It is called
// without a mutex held, since that is code of the user.
//
// The lease can be lost meanwhile. Observers were then told of its end in the context that it had
// before, and it keeps that one.
func (a *acquisition) work(x *Lease) {
	r := a.engine
	if r.events == nil || r.events.observer.WorkContext == nil || x.inside != nil {
		return
	}
	subject := a.cfg.subject(a.ctx, a.name)
	event := AcquiredEvent{subject, subject.At.Sub(a.began), x.Fence(), false, x.tenure.local}
	under := r.events.workContext(r, x, event)
	if under == nil {
		return
	}
	x.tenure.mu.Lock()
	defer x.tenure.mu.Unlock()
	if x.loss == nil {
		x.values = under
	}
}

// workContext asks the observer. A panic of it ends here, and the result is nil. If it ends the
// goroutine instead, nobody gets the lease, so it is given back.
func (e *events) workContext(r *engine, x *Lease, event AcquiredEvent) (under context.Context) {
	returned := false
	defer func() {
		if returned {
			return
		}
		with, at := "runtime.Goexit", origin()
		if panicked := recover(); panicked != nil {
			with = fmt.Sprintf("%T", panicked)
		} else {
			defer func() { _ = x.end(context.WithoutCancel(x.values), false) }() // told to observer and log
		}
		e.add(r, brokenHook{with, at})
	}()
	under = e.observer.WorkContext(x.values, event)
	returned = true
	return under
}

// brokenHook is for the log: Observer.WorkContext has panicked, or has ended its goroutine.
type brokenHook struct{ with, at string }
