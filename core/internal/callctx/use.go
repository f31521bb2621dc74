package callctx

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// use is the bounded context of one call in builds in which checksUse is true: builds with the race
// detector, and so all tests. It panics in three cases: if it is used after the call, when the
// bounded context may belong to another call; if the call ends while a context that was derived
// from it still stands; and if the call is ended twice. If the time of a bounded context has run
// out, no other call gets it, and it may be used on.
//
// It cannot find code that goes on waiting on the channel that Done has returned.
type use struct {
	*bounded
	derived atomic.Int64 // how many contexts derived from it still stand
	ended   atomic.Bool
	again   atomic.Bool // the bounded context may belong to another call
}

func (u *use) end() {
	if u.ended.Swap(true) {
		panic("callctx: the context of a driver call is ended twice")
	}
	if !u.putBack() {
		return
	}
	u.again.Store(true)
	if u.derived.Load() > 0 {
		panic("callctx: a context that was made of a driver call's outlives the call")
	}
}

func (u *use) check() {
	if u.again.Load() {
		panic("callctx: the context of a driver call is used after the call, and may be another call's")
	}
}

// Deadline implements context.Context.
func (u *use) Deadline() (time.Time, bool) { u.check(); return u.bounded.Deadline() }

// Done implements context.Context.
func (u *use) Done() <-chan struct{} {
	if u.again.Load() { // looked at once: the call may end meanwhile
		if propagates() {
			return nil
		}
		u.check()
	}
	return u.bounded.Done()
}

// propagates says whether package context is the caller, on a goroutine that waits for the end of a
// context derived from this one. Such a goroutine may begin when that context and the call have
// ended.
func propagates() bool {
	var callers [16]uintptr
	frames := runtime.CallersFrames(callers[:runtime.Callers(1, callers[:])])
	for {
		frame, more := frames.Next()
		if strings.HasPrefix(frame.Function, "context.(*cancelCtx).propagateCancel.func") || !more {
			return more
		}
	}
}

// Err implements context.Context.
func (u *use) Err() error { u.check(); return u.bounded.Err() }

// Value implements context.Context.
func (u *use) Value(key any) any { u.check(); return u.bounded.Value(key) }

// AfterFunc is what package context calls to derive a context from this one, instead of starting a
// goroutine that waits on Done. It does not call it if there is a context of context.WithValue in
// between.
func (u *use) AfterFunc(f func()) (stop func() bool) {
	u.check()
	u.derived.Add(1)
	gone := sync.OnceFunc(func() { u.derived.Add(-1) })
	off := context.AfterFunc(u.bounded, f) // once it runs, nobody looks at derived
	return func() bool { gone(); return off() }
}
