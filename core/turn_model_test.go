package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/drivertest"
)

// model is what every interleaving must keep: one trusted lease at a time, fences that grow
// in the order of the grants, and an end to every call.
type model struct {
	*bench
	rng *rand.Rand

	mu     sync.Mutex // protects the fields below
	holder *core.Lease
	fence  uint64
	grants int
}

func TestEveryInterleavingOfTurnsKeepsOneHolder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				m := &model{bench: b, rng: rand.New(rand.NewPCG(seed, 1))}
				m.run()
			})
		})
	}
}

func (m *model) run() {
	links := []*drivertest.Link{m.link, drivertest.NewLink(m.store), drivertest.NewLink(m.store)}
	lockers := []*core.Locker{m.locks, m.locker(links[1]), m.locker(links[2])}
	var workers, weather sync.WaitGroup
	calm := make(chan struct{})
	for i, locks := range lockers {
		for range 4 {
			seed := m.rng.Uint64()
			workers.Go(func() { m.work(locks, rand.New(rand.NewPCG(seed, 2)), i == 2) })
		}
	}
	for _, link := range links {
		seed := m.rng.Uint64()
		weather.Go(func() { m.storm(link, rand.New(rand.NewPCG(seed, 3)), calm) })
	}
	if m.rng.IntN(3) == 0 {
		weather.Go(func() {
			time.Sleep(time.Duration(m.rng.IntN(int(4 * ttl))))
			ctx, cancel := context.WithTimeout(m.Context(), ttl)
			defer cancel()
			_ = lockers[2].Close(ctx)
		})
	}
	workers.Wait()
	close(calm)
	weather.Wait()
	m.took(0, ttl+time.Second, func() { // what anybody has left behind
		x, err := lockers[0].Acquire(m.Context(), "name")
		m.ok(err)
		m.enter(x)
		m.leave(x)
		m.ok(x.Release(m.Context()))
	})
	if m.grants < 10 {
		m.Errorf("only %d grants", m.grants)
	}
}

// work takes the name again and again, in every way there is.
func (m *model) work(locks *core.Locker, rng *rand.Rand, closes bool) {
	for range 20 {
		ctx, cancel := context.WithTimeout(m.Context(), 100*ttl)
		if rng.IntN(4) == 0 {
			time.AfterFunc(time.Duration(rng.IntN(int(ttl))), cancel)
		}
		var opts []core.Option
		switch rng.IntN(8) {
		case 0:
			opts = append(opts, core.WithWait(time.Duration(rng.IntN(int(ttl/time.Millisecond)))*time.Millisecond))
		case 1:
			opts = append(opts, core.WithLabel("mine"))
		case 2:
			opts = append(opts, core.WithMaxHold(time.Duration(1+rng.IntN(20))*time.Millisecond))
		}
		x, err := locks.Acquire(ctx, "name", opts...)
		if err == nil {
			m.enter(x)
			m.hold(x, rng)
			m.leave(x)
			if err := x.Release(ctx); err != nil && !errors.Is(err, core.ErrLost) && !errors.Is(err, core.ErrUnavailable) {
				m.Errorf("release: %v", err)
			}
		} else if ctx.Err() == nil && !errors.Is(err, core.ErrUnavailable) && !errors.Is(err, core.ErrHeld) &&
			(!closes || !errors.Is(err, core.ErrClosed)) {
			m.Errorf("acquire: %v", err)
		}
		cancel()
	}
}

func (m *model) hold(x *core.Lease, rng *rand.Rand) {
	d := time.Duration(rng.IntN(int(2 * time.Millisecond)))
	switch rng.IntN(12) {
	case 0:
		d = time.Duration(rng.IntN(int(2 * ttl)))
	case 1:
		d = 0
	}
	select {
	case <-time.After(d):
	case <-x.Context().Done():
		if rng.IntN(2) == 0 { // deaf work
			time.Sleep(d)
		}
	}
}

// enter is called as soon as a lease is there: no other one may be trusted by then.
func (m *model) enter(x *core.Lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.grants++
	if before := m.holder; before != nil && before.Err() == nil && x.Err() == nil {
		m.Errorf("%v and %v are both trusted", before, x)
	}
	if x.Fence() <= m.fence && x.Err() == nil {
		m.Errorf("fence %d after %d", x.Fence(), m.fence)
	}
	m.holder = x
	m.fence = max(m.fence, x.Fence())
}

func (m *model) leave(x *core.Lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holder == x {
		m.holder = nil
	}
}

// storm gives a link's commands every fate, until the work is done.
func (m *model) storm(link *drivertest.Link, rng *rand.Rand, calm <-chan struct{}) {
	ops := []drivertest.Op{
		drivertest.OpAcquire, drivertest.OpRenew, drivertest.OpRelease, drivertest.OpWait, drivertest.OpYield,
	}
	fates := []drivertest.Fate{
		drivertest.Refused, drivertest.RequestLost, drivertest.ReplyLost, drivertest.ReplyReset,
		drivertest.HeldBack, drivertest.ReplyHeldBack,
	}
	link.Delay(time.Duration(rng.IntN(int(time.Millisecond))), time.Duration(rng.IntN(int(time.Millisecond))))
	for {
		select {
		case <-calm:
			link.Heal()
			return
		case <-time.After(time.Duration(rng.IntN(int(ttl / 4)))):
		}
		op, fate := ops[rng.IntN(len(ops))], fates[rng.IntN(len(fates))]
		switch rng.IntN(4) {
		case 0:
			link.Deliver()
		case 1: // an outage
			link.All(fate, op)
			time.Sleep(time.Duration(rng.IntN(int(ttl))))
			link.All(drivertest.Delivered, op)
		default:
			link.Next(op, fate)
		}
	}
}
