// Package tasks counts what somebody waits for: the goroutines of a Locker, its calls, its leases.
package tasks

import (
	"context"
	"sync/atomic"
)

// Group counts tasks under way. It is safe for concurrent use.
//
// It is not a sync.WaitGroup, because a task may begin while somebody waits, and because the wait ends
// with a context.
type Group struct {
	under atomic.Int64
	quiet chan struct{} // of size one: there may be none
}

// New returns a Group without tasks.
func New() *Group { return &Group{quiet: make(chan struct{}, 1)} }

// Enter says that a task begins, and Leave that it has ended.
func (g *Group) Enter() { g.under.Add(1) }

// Leave says that a task has ended.
func (g *Group) Leave() {
	if g.under.Add(-1) == 0 {
		g.stir()
	}
}

// Go runs f on a goroutine that is a task.
func (g *Group) Go(f func()) {
	g.Enter()
	go func() {
		defer g.Leave()
		f()
	}()
}

// Count says how many tasks are under way.
func (g *Group) Count() int { return int(g.under.Load()) }

// Wait waits until no task is under way, or until ctx ends. Several goroutines may wait.
func (g *Group) Wait(ctx context.Context) error {
	for g.under.Load() > 0 {
		select {
		case <-g.quiet:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	g.stir() // for another one who waits
	return nil
}

func (g *Group) stir() {
	select {
	case g.quiet <- struct{}{}:
	default:
	}
}
