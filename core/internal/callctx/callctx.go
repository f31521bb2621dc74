// Package callctx has the contexts of driver calls that run on their caller's own goroutine.
package callctx

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// Pool makes such contexts. The zero Pool is ready to use, and safe for concurrent use.
type Pool struct{ spare sync.Pool } // of *bounded

// bounded is the context of one call. It has the caller's values and a deadline. A later call uses
// it again, unless its time ran out: context.WithTimeout would be six allocations for each command.
// So nothing that outlives a call may use its context: see use.
type bounded struct {
	context.Context // of the caller, for its values
	deadline        time.Time
	timer           *time.Timer
	done            chan struct{}
	over            atomic.Bool
	spare           *sync.Pool // where it waits for the next call
	end             func()     // made once, for all calls
}

// Get returns a context for one call, which takes at most d from now on, and the function that ends it. The
// deadline of the caller's context ends it too; a cancellation of the caller's context does not.
func (p *Pool) Get(caller context.Context, now time.Time, d time.Duration) (ctx context.Context, end func()) {
	b, _ := p.spare.Get().(*bounded)
	if b == nil {
		b = &bounded{done: make(chan struct{}), spare: &p.spare}
		b.end = func() { b.putBack() }
	}
	b.Context, b.deadline = caller, now.Add(d)
	if deadline, ok := caller.Deadline(); ok && deadline.Before(b.deadline) {
		b.deadline = deadline
		d = deadline.Sub(now)
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

// putBack leaves b to the next call if its time has not run out. It says whether it did.
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
