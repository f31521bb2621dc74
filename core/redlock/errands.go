package redlock

import (
	"context"
	"fmt"
	"sync"
	"time"
)

// errands are goroutines that CloseIdle waits for. Some are sent out under a ballot's mutex, so
// theirs is one of their own, and the last that anybody takes.
type errands struct {
	mu   sync.Mutex // protects the fields below
	out  int
	back chan struct{} // made by who waits until none is out
}

// spawn runs f on a goroutine.
func (e *errands) spawn(f func()) {
	e.mu.Lock()
	e.out++
	e.mu.Unlock()
	go func() {
		defer e.done()
		f()
	}()
}

func (e *errands) done() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.out--
	if e.out == 0 && e.back != nil {
		close(e.back)
		e.back = nil
	}
}

// settle waits until no goroutine is left, for as long as ctx stands, and not beyond bound.
func (e *errands) settle(ctx context.Context, bound time.Duration) error {
	e.mu.Lock()
	if e.out == 0 {
		e.mu.Unlock()
		return nil
	}
	if e.back == nil {
		e.back = make(chan struct{})
	}
	back := e.back
	e.mu.Unlock()
	ctx, stop := context.WithTimeout(ctx, bound)
	defer stop()
	select {
	case <-back:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("redlock: a node has still not answered: %w", ctx.Err())
	}
}
