package main

import (
	"context"
	"sync"
	"time"
)

// still is what stands still, in a whole fleet: leases that are held, and goroutines that wait for them.
type still struct {
	leases int
	each   int // wait for each of these names, all of them in other members than its holder
}

// standing is one process's part. It sends what it sends only to keep everything as it is.
type standing struct {
	hoard
	still

	procs  int
	stop   context.CancelFunc // ends the waits
	queues sync.WaitGroup
}

func (s *standing) prepare(e *env) error {
	f := e.locks.(*fleet)
	from, to := part(s.leases, e.Proc, s.procs)
	s.from, s.kept = from, make([]lease, to-from)
	s.take(e, func(i int) (lease, error) { return f.member(from+i).lock(s.ctx, e.name(from+i)) })
	var waits context.Context
	waits, s.stop = context.WithCancel(s.ctx)
	for i := range to - from {
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
	return s.hoard.finish(e)
}
