package callctx

import (
	"context"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// use is the bounded context of one call, where checksUse says so: in builds with the race
// detector, and so in all tests. Whoever uses it after the call, when the bounded one may be
// another call's, panics; and so does an end of the call that leaves a context behind which was
// made of it, and a second end. After its time has run out it is nobody else's, and may be used.
//
// What it cannot find is somebody who goes on waiting at the channel that Done has returned.
type use struct {
	*bounded
	derived atomic.Int64 // contexts made of it that stand
	ended   atomic.Bool
	again   atomic.Bool // the bounded one is another call's
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
	if u.again.Load() && propagates() {
		return nil
	}
	u.check()
	return u.bounded.Done()
}

// propagates says whether package context asks, on a goroutine that waits for the end of a
// context which was made of this one. It may begin when that has ended, and the call too.
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

// AfterFunc is what package context asks for to make a context of this one, unless there is one by
// context.WithValue in between, instead of a goroutine that waits at Done.
func (u *use) AfterFunc(f func()) (stop func() bool) {
	u.check()
	u.derived.Add(1)
	gone := sync.OnceFunc(func() { u.derived.Add(-1) })
	off := context.AfterFunc(u.bounded, func() { gone(); f() })
	return func() bool { gone(); return off() }
}
