package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// still is what stands still, in a whole fleet: leases that are held, and goroutines that wait for them.
type still struct {
	leases  int
	waiters int  // for the first of these names
	each    int  // wait for each of these names, all of them in other members than its holder
	slots   bool // the fleet has WithSlots
}

// standing is one process's part. It sends what it sends only to keep everything as it is.
type standing struct {
	*report
	still

	ctx   context.Context
	procs int

	from   int // the first name of this process
	held   []lease
	stop   context.CancelFunc // ends the waits
	queues sync.WaitGroup
	mu     sync.Mutex // protects faults
}

func (s *standing) prepare(e *env) error {
	f := e.locks.(*fleet)
	from, to := part(s.leases, e.Proc, s.procs)
	s.from, s.held = from, make([]lease, to-from)
	s.all(func(i int) {
		x, err := f.member(from+i).lock(s.ctx, e.name(from+i))
		s.mu.Lock()
		defer s.mu.Unlock()
		if err != nil {
			s.failed(err)
			return
		}
		s.held[i] = x
		s.enter(e.section.place(from+i), e.who(from+i), fenceOf(x))
	})
	var waits context.Context
	waits, s.stop = context.WithCancel(s.ctx)
	for i := range s.held {
		for k := range s.each {
			s.wait(waits, e, f.member(from+i+1+k), from+i)
		}
	}
	if err := s.lineUp(waits, e, f); err != nil {
		return err
	}
	if s.waiters+s.each > 0 && !e.Quick {
		time.Sleep(2 * time.Second) // until all are in line
	}
	return nil
}

// lineUp has this process's part of the waiters wait for the first name, once that is held.
func (s *standing) lineUp(ctx context.Context, e *env, f *fleet) error {
	from, to := part(s.waiters, e.Proc, s.procs)
	for held := int64(0); from < to && held == 0; {
		var err error
		if held, err = f.member(0).rdb.Exists(ctx, "holdfast:"+e.name(0)).Result(); err != nil {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
	others := f.members
	if s.from == 0 && len(s.held) > 0 && len(others) > 1 { // the first one holds it
		others = others[1:]
	}
	for i := range to - from {
		s.wait(ctx, e, others[i%len(others)], 0)
	}
	return nil
}

// wait waits in a goroutine until the waits end. Other processes may end theirs earlier, and with them
// their leases.
func (s *standing) wait(ctx context.Context, e *env, m *mate, name int) {
	s.queues.Go(func() {
		x, err := m.lock(ctx, e.name(name))
		if err == nil {
			s.mu.Lock()
			s.visit(e.section.place(name), 1<<63|e.who(name), fenceOf(x))
			s.mu.Unlock()
			err = x.Release(s.ctx) //nolint:contextcheck // ctx may be over, and the name is to be free
		}
		if err != nil && ctx.Err() == nil {
			s.mu.Lock()
			s.failed(err)
			s.mu.Unlock()
		}
	})
}

func (s *standing) measure(e *env) error {
	before, cpu := e.traffic.counts(), cpuTime()
	time.Sleep(e.Length)
	s.Sent = e.traffic.since(before)
	s.Figures["cpu"] = (cpuTime() - cpu).Seconds()
	return nil
}

func (s *standing) finish(e *env) error {
	s.stop()
	s.queues.Wait()
	var gone atomic.Int64
	s.all(func(i int) {
		x := s.held[i]
		if x == nil {
			return // counted as failed
		}
		if lost(x) {
			gone.Add(1)
		}
		s.mu.Lock()
		s.leave(e.section.place(s.from+i), e.who(s.from+i))
		s.mu.Unlock()
		if err := x.Release(s.ctx); err != nil {
			s.mu.Lock()
			s.failed(err)
			s.mu.Unlock()
		}
	})
	s.Figures["lost"] += float64(gone.Load())
	return nil
}

// all does something for all leases of this process, a number of them at once.
func (s *standing) all(do func(i int)) {
	var wg sync.WaitGroup
	for w := range crowd {
		wg.Go(func() {
			for i := w; i < len(s.held); i += crowd {
				do(i)
			}
		})
	}
	wg.Wait()
}
