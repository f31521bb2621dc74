package core_test

import (
	"context"
	"errors"
	"time"

	"github.com/holdfast-go/holdfast/core"
)

// run does one job.
func (s *scene) run(e *job) {
	time.Sleep(e.at)
	ctx, cancel := s.context(e)
	defer cancel()
	if e.way == do || e.way == campaign {
		s.runUnder(ctx, e)
		return
	}
	if h := s.acquire(ctx, e); h != nil {
		s.work(h.lease.Context(), h)
		s.end(h)
	}
}

// context is what the job's caller comes with.
func (s *scene) context(e *job) (context.Context, context.CancelFunc) {
	switch e.leave {
	case noContext:
		return context.Background(), func() {}
	case deadline:
		return context.WithTimeout(s.stop, e.leaves)
	case cancelled:
		ctx, cancel := context.WithCancel(s.stop)
		timer := time.AfterFunc(e.leaves, cancel)
		return ctx, func() { timer.Stop(); cancel() }
	default:
		return context.WithCancel(s.stop)
	}
}

// acquire asks for a lease as the job says.
func (s *scene) acquire(ctx context.Context, e *job) *holding {
	r := s.ask(ctx, e)
	locks, opts := r.process.locks, s.options(r)
	var x leases
	var err error
	switch way := e.way; {
	case e.handoff != noHandoff:
		x, err = locks.Attach(r.ctx, r.handoff, opts...)
	case way == several:
		x, err = locks.AcquireAll(r.ctx, e.names, opts...)
	case way == try:
		x, err = locks.TryAcquire(r.ctx, e.names[0], opts...)
	default:
		x, err = locks.Acquire(r.ctx, e.names[0], opts...)
	}
	s.answered(r, err)
	if err != nil {
		return nil
	}
	return s.enter(r, x)
}

const dedupWindow = 3 * time.Second

func (s *scene) options(r *request) []core.Option {
	e := r.job
	opts := []core.Option{core.WithWait(e.wait)}
	if e.way == try {
		opts = []core.Option{core.WithWait(0)}
	}
	add := func(when bool, o core.Option) {
		if when {
			opts = append(opts, o)
		}
	}
	add(e.kind == reader, core.WithShared())
	add(e.kind == limited, core.WithLimit(e.limit))
	add(e.kind == minHeld, core.WithMinHold(e.minHold))
	add(e.kind == deduped, core.WithDedup(dedupWindow))
	add(e.local, core.OnUnavailable(core.LocalOnly))
	add(e.ttl > 0, core.WithTTL(e.ttl))
	add(e.label == labelled, core.WithLabel("mine"))
	add(e.label == unlabeled, core.WithLabel(""))
	add(e.label == operation, core.WithOperation("POST /orders"))
	add(e.bound == unwatched, core.WithoutRenewal())
	add(e.bound == maxHeld, core.WithMaxHold(s.maxHold()))
	return opts
}

var errPanic = errors.New("a panic, on purpose")

// runUnder is run for what calls a function. A campaign calls it again after a loss.
func (s *scene) runUnder(ctx context.Context, e *job) {
	r := s.ask(ctx, e)
	var h *holding
	var lost bool
	var began time.Time // of the end
	var marks []*mark
	terms := 0
	fn := func(ctx context.Context) error {
		s.gone(h, time.Now(), nil)
		if e.way == do {
			s.answered(r, nil)
		}
		x, _ := core.FromContext(ctx)
		h = s.enter(r, x)
		if terms++; terms <= 3 { // it resigns some time
			s.work(ctx, h)
		}
		lost, began, marks = s.lost(h), time.Now(), s.marks(h, e.kind == deduped && e.ending == release)
		switch e.ending {
		case panics:
			panic(errPanic)
		case release:
			return nil
		default:
			return errWork
		}
	}
	locks := r.process.locks
	err := recovered(func() error {
		switch {
		case e.way == campaign:
			return locks.Campaign(r.ctx, e.names[0], fn, s.options(r)...)
		case e.handoff != noHandoff:
			return locks.DoAttached(r.ctx, r.handoff, fn, s.options(r)...)
		default:
			return locks.Do(r.ctx, e.names[0], fn, s.options(r)...)
		}
	})
	if h == nil {
		s.answered(r, err)
		return
	}
	s.returned(h, marks, lost, began, err)
	s.answered(r, nil)
}

func recovered(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err, _ = p.(error)
		}
	}()
	return call()
}
