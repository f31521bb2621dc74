package lab

import (
	"context"
	"sync"
	"sync/atomic"
)

// Followed is a context that lives long, and counts who waits for its end. It has no values.
type Followed struct {
	context.Context

	Then func() // runs, once, in the middle of the next registration

	n atomic.Int32
}

// AfterFunc is what package context calls instead of registering by itself.
func (f *Followed) AfterFunc(do func()) (stop func() bool) {
	f.n.Add(1)
	if then := f.Then; then != nil {
		f.Then = nil
		then()
	}
	gone := sync.OnceFunc(func() { f.n.Add(-1) })
	off := context.AfterFunc(f.Context, do)
	return func() bool { gone(); return off() }
}

// Value hides the context below, at which package context would register by itself.
func (f *Followed) Value(any) any { return nil }

// Followers is how many wait for its end.
func (f *Followed) Followers() int { return int(f.n.Load()) }
