package main

import (
	"context"
	"errors"
	"time"
)

// What each step of a stop may take: 23 s at most, of the 30 s that Kubernetes gives by default. One
// deadline for all would let the first step use up what the last one needs.
const (
	drainBudget   = 10 * time.Second // work under way; longer than most of it takes
	serversBudget = 3 * time.Second  // answers on their way
	workersBudget = 5 * time.Second  // of asynq: tasks that still run go back into the queue
	closeBudget   = 4 * time.Second  // work that still runs is told to stop
	lastBudget    = time.Second
)

// stop ends the service. Its order: nothing new comes in, what runs is finished, then the ground under
// it goes.
func (s *service) stop() error {
	s.workers.Stop() // fetches no more tasks
	if s.webAt != nil {
		s.scheduler.Shutdown() // enqueues nothing more
	}

	// From here on /ready says 503, and so does every route with a lock. The servers still answer, so that
	// clients and the load balancer learn of it, while requests and tasks under way are finished.
	err := within(drainBudget, s.locks.Drain)

	err = errors.Join(err, within(serversBudget, s.web.Shutdown), s.web.Close())
	stopped := make(chan struct{})
	go func() { s.rpc.GracefulStop(); close(stopped) }()
	select {
	case <-stopped:
	case <-time.After(lastBudget):
		s.rpc.Stop()
	}
	s.workers.Shutdown() // takes workersBudget at most

	err = errors.Join(err, within(closeBudget, s.locks.Close))
	return errors.Join(err, s.rdb.Close())
}

func within(d time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	defer cancel()
	return f(ctx)
}
