package core

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// bounded is the context of a driver call that runs on its caller's own goroutine: the
// caller's values and a deadline. It is used again by a later call, unless its time ran out;
// context.WithTimeout would be six allocations for each command. So nothing that outlives a call
// may use its context: see use.
type bounded struct {
	context.Context // of the caller, for its values
	deadline        time.Time
	timer           *time.Timer
	done            chan struct{}
	over            atomic.Bool
	spare           *sync.Pool // where it waits for the next call
	end             func()     // made once, for all calls
}

// within returns a context for one driver call, which takes d at most, and what ends it. If
// it is a bounded one, the call may run on the caller's goroutine.
func (r *root) within(caller context.Context, d time.Duration) (context.Context, func()) {
	if r.inline(caller) {
		return r.bound(caller, d)
	}
	return context.WithTimeout(caller, d)
}

// here says whether the call that ctx is for may run on the caller's goroutine.
func here(ctx context.Context) bool {
	if checksUse {
		_, ok := ctx.(*use)
		return ok
	}
	_, ok := ctx.(*bounded)
	return ok
}

func (r *root) bound(caller context.Context, d time.Duration) (context.Context, func()) {
	b, _ := r.spare.Get().(*bounded)
	if b == nil {
		b = &bounded{done: make(chan struct{}), spare: &r.spare}
		b.end = func() { b.putBack() }
	}
	b.Context, b.deadline = caller, time.Now().Add(d)
	if deadline, ok := caller.Deadline(); ok && deadline.Before(b.deadline) {
		b.deadline = deadline
		d = time.Until(deadline)
	}
	if b.timer == nil {
		b.timer = time.AfterFunc(d, b.expire)
	} else {
		b.timer.Reset(d)
	}
	if checksUse {
		u := &use{bounded: b}
		return u, u.end
	}
	return b, b.end
}

// putBack leaves b to the next call, if its time has not run out, and says whether it did.
func (b *bounded) putBack() bool {
	if !b.timer.Stop() {
		return false
	}
	b.Context = nil
	b.spare.Put(b)
	return true
}

func (b *bounded) expire() {
	b.over.Store(true)
	close(b.done)
}

// Deadline implements context.Context.
func (b *bounded) Deadline() (time.Time, bool) { return b.deadline, true }

// Done implements context.Context.
func (b *bounded) Done() <-chan struct{} { return b.done }

// Err implements context.Context.
func (b *bounded) Err() error {
	if b.over.Load() {
		return context.DeadlineExceeded
	}
	return nil
}
