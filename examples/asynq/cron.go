package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/taskmw"
)

const (
	nodes  = 3
	ticks  = 3
	period = 2 * time.Second
)

// cron has the schedulers of all nodes enqueue one job, and counts how often it runs.
func cron(ctx context.Context, out io.Writer, s *service, guarded bool) error {
	fmt.Fprintf(out, "1  Three nodes, each with a scheduler and a worker: a job for every %s\n\n", period)
	b := &board{enqueued: make(map[int]int), ran: make(map[int][]int)}
	queue := s.queue("cron")
	for node := range nodes {
		stop, err := b.worker(s, queue, node+1, guarded)
		if err != nil {
			return err
		}
		defer stop()
	}
	stop, err := b.schedulers(ctx, s, queue)
	if err != nil {
		return err
	}
	defer stop()
	var wrong []error
	for tick := 1; tick <= ticks; tick++ {
		if err := until(ctx, b.began.Add(time.Duration(tick)*period+period*3/4)); err != nil {
			return err
		}
		wrong = append(wrong, b.report(out, tick))
	}
	return errors.Join(wrong...)
}

func until(ctx context.Context, t time.Time) error {
	timer := time.NewTimer(time.Until(t))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-timer.C:
		return nil
	}
}

// board is where the nodes write down what they do.
type board struct {
	began time.Time

	mu       sync.Mutex // protects what follows
	enqueued map[int]int
	ran      map[int][]int // the nodes on which the job ran
	err      error
}

// tick is the number of the present one.
func (b *board) tick() int { return int(time.Since(b.began) / period) }

// worker starts a node's worker. It has a Locker of its own, as on a machine of its own.
func (b *board) worker(s *service, queue string, node int, guarded bool) (stop func(), err error) {
	locks, err := s.locks()
	if err != nil {
		return nil, err
	}
	var cfg asynq.Config
	mux := asynq.NewServeMux()
	if guarded {
		taskmw.Configure(&cfg)
		// The name stays taken for half of a period from the job's start, so the other nodes' tasks for
		// this tick are skipped. Choose MinHold shorter than the period, and longer than the clock skew
		// plus the queue latency. core.WithDedup would not do: its window counts from the end of the
		// work, so a long run swallows the next tick, and a job that fails leaves no marker.
		mux.Use(taskmw.Middleware(locks,
			taskmw.WithType("cleanup", "cron:cleanup", core.WithMinHold(period/2)).OnConflict(taskmw.Skip)))
	}
	mux.HandleFunc("cleanup", func(ctx context.Context, _ *asynq.Task) error {
		b.mu.Lock()
		b.ran[b.tick()] = append(b.ran[b.tick()], node)
		b.mu.Unlock()
		return until(ctx, time.Now().Add(100*time.Millisecond)) // the work
	})
	srv, err := s.serve(cfg, queue, mux)
	if err != nil {
		return nil, err
	}
	return func() {
		srv.Shutdown()
		_ = locks.Close(context.Background()) // nothing is held any more
	}, nil
}

// schedulers starts those of all nodes. "@every 2s" counts whole seconds from the start of a scheduler, so all have to start in
// the same one. Five-field lines agree by themselves, but tick every minute at best.
func (b *board) schedulers(ctx context.Context, s *service, queue string) (stop func(), err error) {
	for {
		b.began = time.Now().Truncate(time.Second).Add(time.Second)
		if err := until(ctx, b.began.Add(50*time.Millisecond)); err != nil {
			return nil, err
		}
		var started []*asynq.Scheduler
		stop := func() {
			for _, x := range started {
				x.Shutdown()
			}
		}
		for range nodes {
			x, err := b.scheduler(s, queue)
			if err == nil {
				err = x.Start()
			}
			if err != nil {
				stop()
				return nil, err
			}
			started = append(started, x)
		}
		if time.Since(b.began) < time.Second {
			return stop, nil
		}
		stop() // this machine is too busy: in another second
	}
}

func (b *board) scheduler(s *service, queue string) (*asynq.Scheduler, error) {
	x := asynq.NewSchedulerFromRedisClient(s.rdb, &asynq.SchedulerOpts{
		LogLevel: asynq.FatalLevel,
		PostEnqueueFunc: func(_ *asynq.TaskInfo, err error) {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.err = errors.Join(b.err, err)
			b.enqueued[b.tick()]++
		},
	})
	_, err := x.Register("@every "+period.String(), asynq.NewTask("cleanup", nil), asynq.Queue(queue))
	return x, err
}

// report tells of a tick that is over.
func (b *board) report(out io.Writer, tick int) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	enqueued, ran := b.enqueued[tick], b.ran[tick]
	fmt.Fprintf(out, "   tick %d: enqueued %d times, ran on node %v\n", tick, enqueued, ran)
	if b.err != nil {
		return b.err
	}
	if enqueued != nodes || len(ran) != 1 {
		return fmt.Errorf("tick %d: enqueued %d times, ran %d times", tick, enqueued, len(ran))
	}
	return nil
}
