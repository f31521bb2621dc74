package main

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

// still is what stands still, in a whole fleet: leases that are held, and goroutines that wait for them.
type still struct {
	leases int
	each   int // wait for each of these names, all of them in other members than its holder
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
	each(len(s.held), func(i int) {
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
	if s.each > 0 && !e.Quick {
		time.Sleep(2 * time.Second) // until all are in line
	}
	return nil
}

// wait waits in a goroutine until the waits end. Other processes may end theirs earlier, and with them
// their leases.
func (s *standing) wait(ctx context.Context, e *env, m *holdfast, name int) {
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
	each(len(s.held), func(i int) {
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
