package bench

import (
	"context"
	"runtime"
	"sync"
	"time"
)

// standing is leases that nothing happens to, but their watchdog; and perhaps a waiter for each, in another member than its
// holder. A process sends what it sends only to keep everything as it is.
type standing struct {
	waiters bool

	kept   []lease
	stop   context.CancelFunc // ends the waits
	queues sync.WaitGroup
	idle   int // goroutines before all that
}

// crowd is how many goroutines acquire and release the leases.
const crowd = 64

// each does something with each lease of this process, by a number of goroutines.
func (s *standing) each(e *env, do func(i int) error) {
	var wg sync.WaitGroup
	for w := range crowd {
		wg.Go(func() {
			for i := e.from + w; i < e.to; i += crowd {
				e.failed(do(i))
			}
		})
	}
	wg.Wait()
}

func (s *standing) prepare(e *env) {
	to := e.to
	e.to = min(to, e.from+crowd*len(e.lockers))
	loop{}.prepare(e) // connections and scripts belong to no lease
	e.to = to
	names := make([]string, e.Size.N)
	for i := range names {
		names[i] = lockName(i)
	}
	s.kept = make([]lease, e.Size.N)
	memory := inUse()
	s.idle = runtime.NumGoroutine()
	s.each(e, func(i int) (err error) {
		s.kept[i], err = e.locker(i).lock(e.ctx, names[i])
		return err
	})
	e.Figures["bytes"] = inUse() - memory
	runtime.KeepAlive(names)
	var waits context.Context
	waits, s.stop = context.WithCancel(e.ctx)
	for i := e.from; i < e.to; i++ {
		if x := s.kept[i]; x != nil {
			e.Figures["leases"]++
		}
		if s.waiters {
			s.queues.Go(func() { s.wait(waits, e, i) })
		}
	}
	if s.waiters {
		time.Sleep(e.Length / 2) // until all are in line
	}
}

// wait waits until the waits end. Other processes may end theirs earlier, and with them their leases.
func (s *standing) wait(ctx context.Context, e *env, i int) {
	x, err := e.locker(i+1).lock(ctx, lockName(i))
	if err == nil {
		err = x.Release(e.ctx) //nolint:contextcheck // ctx may be over, and the name is to be free
	}
	if ctx.Err() == nil {
		e.failed(err)
	}
}

func (s *standing) measure(e *env) {
	e.observe()
	e.Figures["seconds"] = e.Length.Seconds()
	e.Figures["goroutines"] = float64(runtime.NumGoroutine() - s.idle)
}

// finish releases them, and counts those that were lost.
func (s *standing) finish(e *env) {
	s.stop()
	s.queues.Wait()
	s.each(e, func(i int) error {
		x := s.kept[i]
		if x == nil {
			return nil // counted as failed
		}
		if lost(x) {
			e.mu.Lock()
			e.Figures["lost"]++
			e.mu.Unlock()
		}
		return x.Release(e.ctx)
	})
}

// inUse is the memory of heap and stacks, after what is garbage has gone.
func inUse() float64 {
	runtime.GC()
	runtime.GC() // what finalizers and pools kept over the first one
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc) + float64(m.StackInuse)
}

// waiting is a holder, process 0, and those who wait for it, in process 1.
type waiting struct{ held lease }

func (w *waiting) prepare(e *env) {
	if e.Proc == 0 {
		var err error
		w.held, err = e.locker(0).lock(e.ctx, lockName(0))
		must(err)
	}
}

func (w *waiting) measure(e *env) {
	if e.Proc == 0 {
		return
	}
	ctx, cancel := context.WithCancel(e.ctx)
	var wg sync.WaitGroup
	for range e.Size.N {
		wg.Go(func() {
			x, err := e.locker(0).lock(ctx, lockName(0))
			if ctx.Err() != nil {
				return // as it was meant to end
			}
			if err == nil {
				err = x.Release(ctx)
			}
			e.failed(err)
		})
	}
	time.Sleep(e.Length / 3)
	e.observe()
	cancel()
	wg.Wait()
}

func (w *waiting) finish(e *env) {
	if e.Proc == 0 {
		must(w.held.Release(e.ctx))
	}
}
