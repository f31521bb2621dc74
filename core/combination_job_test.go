package core_test

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
)

// run does one job.
func (s *scene) run(e *job) {
	time.Sleep(e.at)
	ctx, cancel := s.context(e)
	defer cancel()
	if e.way == do || e.way == campaign {
		s.runUnder(ctx, e)
	} else {
		s.within(ctx, e)
	}
}

// within does a job in ctx, which may be that of another one's lease.
func (s *scene) within(ctx context.Context, e *job) {
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
	}
	ctx, cancel := context.WithCancel(s.stop)
	if e.leave == cancelled {
		timer := time.AfterFunc(e.leaves, cancel)
		return ctx, func() { timer.Stop(); cancel() }
	}
	return ctx, cancel
}

// acquire asks for a lease as the job says.
func (s *scene) acquire(ctx context.Context, e *job) *holding {
	r := s.ask(ctx, e)
	locks, opts := r.process.locks, s.options(e)
	var x leases
	var err error
	switch {
	case e.handoff != "":
		x, err = locks.Attach(r.ctx, r.handoff, opts...)
	case e.way == several:
		x, err = locks.AcquireAll(r.ctx, e.names, opts...)
	case e.way == try:
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

// budget is how long the job waits.
func (e *job) budget() time.Duration {
	if e.way == try {
		return 0
	}
	return e.wait
}

func (s *scene) options(e *job) []core.Option {
	opts := []core.Option{core.WithWait(e.budget())}
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
	add(e.label != "", core.WithLabel(e.label))
	add(e.bound == unwatched, core.WithoutRenewal())
	add(e.bound == maxHeld, core.WithMaxHold(s.maxHold()))
	return opts
}

var errPanic = errors.New("a panic, on purpose")

// runUnder is run for what calls a function. A campaign calls it again after a loss.
func (s *scene) runUnder(ctx context.Context, e *job) {
	r := s.ask(ctx, e)
	locks, opts := r.process.locks, s.options(e)
	var last *ended
	terms := 0
	fn := func(ctx context.Context) error {
		if last != nil {
			s.gone(last, nil)
		} else if e.way == do {
			s.answered(r, nil)
		}
		x, _ := core.FromContext(ctx)
		h := s.enter(r, x)
		if terms++; terms <= 3 { // it resigns some time
			s.work(ctx, h)
		}
		last = s.ends(h, e.kind == deduped && e.ending == release)
		switch e.ending {
		case panics:
			panic(errPanic)
		case release:
			return nil
		default:
			return errWork
		}
	}
	err := recovered(func() error {
		switch {
		case e.way == campaign:
			return locks.Campaign(r.ctx, e.names[0], fn, opts...)
		case e.handoff != "":
			return locks.DoAttached(r.ctx, r.handoff, fn, opts...)
		default:
			return locks.Do(r.ctx, e.names[0], fn, opts...)
		}
	})
	if last == nil {
		s.answered(r, err)
		return
	}
	s.returned(last, err)
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

// work does what the job says while it holds what it has got.
func (s *scene) work(ctx context.Context, h *holding) {
	pause := func() {
		until := time.After(h.request.job.hold)
		select {
		case <-until:
		case <-ctx.Done():
			if h.request.job.deaf {
				<-until
			}
		}
	}
	steps := map[string]func(context.Context, *holding){
		nothing: func(context.Context, *holding) {}, confirm: s.confirm, rob: s.rob, siblings: s.siblings, nest: s.nest, cross: s.cross,
	}
	pause()
	for _, step := range h.request.job.steps {
		steps[step](ctx, h)
		pause()
	}
}

// confirm asks whether there is enough of the lease left.
func (s *scene) confirm(ctx context.Context, h *holding) {
	stood, began, depth := ctx.Err() == nil, time.Now(), 1+h.request.job.depth
	err := core.Confirm(ctx)
	s.note("%v: Confirm is %v", h.request, err)
	if took := time.Since(began); took > time.Duration(2*depth*len(h.parts))*min(s.longest/5, bound)+slack {
		s.fault("%v: Confirm took %v", h.request, took)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		for _, p := range h.parts {
			s.beside(p)
		}
		if time.Now().Equal(began) && s.isLost(h) {
			s.fault("%v: Confirm is nil, and %v", h.request, h.lease.Err())
		}
		return
	}
	robbed := false // h, or what it is inside of
	for o := h; o != nil; o = o.request.job.outer {
		robbed = robbed || slices.ContainsFunc(o.parts, func(p *part) bool { return s.robbed[p.Token()] })
	}
	if stood && ctx.Err() == nil && !robbed && s.calm(h.request.process, began.Add(-s.linger())) {
		s.fault("%v: Confirm is %v, and the link is in order", h.request, err)
	}
}

// rob deletes the last lock of h at the server, as an operator could. From then on nothing is promised of its token, but that its holder
// hears of the loss, and that nothing else suffers.
func (s *scene) rob(_ context.Context, h *holding) {
	s.mu.Lock()
	p := h.parts[len(h.parts)-1]
	x := s.grants[p.Token()]
	if x == nil || p.Inside() != nil || p.Err() != nil {
		s.mu.Unlock()
		return
	}
	s.robbed[p.Token()] = true
	s.count(true, "deleted locks")
	s.note("%v: somebody deletes %q", h.request, p.Name())
	s.mu.Unlock()
	robber := &server{Store: s.store, scene: s, process: p.process()}
	_ = robber.Release(context.Background(), driver.Claim{Name: p.Name(), Token: p.Token(), Limit: x.claim.Limit}) // it may be over
}

// siblings re-enter the lease, at the same time.
func (s *scene) siblings(ctx context.Context, h *holding) {
	outer := h.request.job
	var all sync.WaitGroup
	for i := range 2 + outer.choice%3 {
		inner := s.inside(h, outer.names[:1])
		switch i := (outer.choice + i) % 5; {
		case i == 0:
			inner.wait = 0
		case i == 1:
			inner.wait = 2 * time.Millisecond
		case i == 2 && inner.kind == exclusive:
			inner.kind = reader
		case i == 3 && inner.depth < 2:
			inner.steps = []string{siblings}
		case i == 4 && inner.kind != exclusive:
			inner.kind, inner.wrong = exclusive, true
		case i == 4 && outer.kind == exclusive:
			inner.kind, inner.wrong = limited, true
		}
		all.Go(func() { s.within(ctx, inner) })
	}
	all.Wait()
}

// nest asks for other names, and for those it has if they can be re-entered.
func (s *scene) nest(ctx context.Context, h *holding) {
	outer := h.request.job
	inner := s.inside(h, []string{"a", "b", "c"}[outer.choice%3:])
	inner.way = several
	if outer.kind == reader || outer.kind == limited {
		inner.names = slices.DeleteFunc(inner.names, h.request.wants)
		inner.kind = exclusive
	}
	if len(inner.names) > 0 {
		s.within(ctx, inner)
	}
}

// cross asks for one more name, in whatever order, and with a budget. Others may have it, and wait for ours.
func (s *scene) cross(ctx context.Context, h *holding) {
	outer := h.request.job
	name := []string{"a", "b", "c"}[(outer.choice+outer.depth)%3]
	if outer.choice%4 > 0 && slices.Contains(outer.names, "a") {
		name = "b"
	} else if outer.choice%4 > 0 && slices.Contains(outer.names, "b") {
		name = "a"
	}
	inner := s.inside(h, []string{name})
	inner.wait = s.ttl / time.Duration(1+outer.choice%4)
	if inner.depth < 3 && outer.choice%3 == 0 {
		inner.steps = []string{cross}
	}
	s.within(ctx, inner)
}

// inside is a job inside the lease of another one.
func (s *scene) inside(h *holding, names []string) *job {
	outer := h.request.job
	inner := &job{
		number: outer.number, process: outer.process, names: names, way: acquire, kind: outer.kind, limit: outer.limit, ttl: outer.ttl,
		wait: core.WaitForever, hold: 3 * time.Millisecond, ending: release, choice: outer.choice / 2, depth: outer.depth + 1, outer: h,
	}
	if inner.kind == deduped || inner.kind == minHeld {
		inner.kind = exclusive
	}
	return inner
}
