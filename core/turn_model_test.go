package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// model is what every interleaving must keep: one trusted lease at a time, fences that grow
// in the order of the grants, and an end to every call.
type model struct {
	*bench
	rng   *rand.Rand
	lease atomic.Int64 // grants to callers

	mu     sync.Mutex // protects the fields below
	holder *core.Lease
	fence  uint64
}

// counted is a store that counts what it has given.
type counted struct {
	*memlock.Store
	grants, yields, refusals atomic.Int64
}

func (c *counted) Acquire(ctx context.Context, claim driver.Claim) (driver.Grant, error) {
	g, err := c.Store.Acquire(ctx, claim)
	if err == nil {
		c.grants.Add(1)
	}
	return g, err
}

func (c *counted) Wait(ctx context.Context, claim driver.Claim) (driver.Grant, error) {
	g, err := c.Store.Wait(ctx, claim)
	if err == nil {
		c.grants.Add(1)
	}
	return g, err
}

// modelSeeds is how many interleavings are tried; HOLDFAST_MODEL_SEEDS says otherwise.
const modelSeeds = 80

func TestEveryInterleavingOfTurnsKeepsOneHolder(t *testing.T) {
	t.Parallel()
	seeds := uint64(modelSeeds)
	if s := os.Getenv("HOLDFAST_MODEL_SEEDS"); s != "" {
		var err error
		if seeds, err = strconv.ParseUint(s, 10, 32); err != nil {
			t.Fatal(err)
		}
	}
	var turns, yields, refusals atomic.Int64
	t.Cleanup(func() { // when all seeds are through
		if turns.Load() < 10 {
			t.Errorf("%d turns: too few to say anything", turns.Load())
		}
	})
	for seed := range seeds {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			virtual(t, func(b *bench) {
				m := &model{bench: b, rng: rand.New(rand.NewPCG(seed, 1))}
				store := &counted{Store: b.store}
				m.run(store)
				turns.Add(max(0, m.lease.Load()-store.grants.Load()))
				yields.Add(store.yields.Load())
				refusals.Add(store.refusals.Load())
			})
		})
	}
}

func (m *model) run(store *counted) {
	links := []*lab.Net{lab.New(store), lab.New(store), lab.New(store)}
	lockers := []*core.Locker{m.locker(links[0]), m.locker(links[1]), m.locker(links[2])}
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
	if m.lease.Load() < 10 {
		m.Errorf("only %d grants", m.lease.Load())
	}
}

// work takes the name again and again, in every way there is.
func (m *model) work(locks *core.Locker, rng *rand.Rand, closes bool) {
	for range 15 {
		ctx, cancel := context.WithTimeout(m.Context(), 100*ttl)
		if rng.IntN(4) == 0 {
			time.AfterFunc(time.Duration(rng.IntN(int(ttl))), cancel)
		}
		dedup := false
		var opts []core.Option
		switch rng.IntN(12) {
		case 0:
			opts = append(opts, core.WithWait(time.Duration(rng.IntN(int(ttl/time.Millisecond)))*time.Millisecond))
		case 1:
			opts = append(opts, core.WithLabel("mine"))
		case 2:
			opts = append(opts, core.WithMaxHold(time.Duration(1+rng.IntN(20))*time.Millisecond))
		case 3:
			opts = append(opts, core.WithDedup(time.Duration(1+rng.IntN(5))*time.Millisecond))
			dedup = true
		}
		acquire := locks.Acquire
		if rng.IntN(10) == 0 {
			acquire = locks.TryAcquire
		}
		x, err := acquire(ctx, "name", opts...)
		switch {
		case err == nil:
			m.enter(x)
			m.hold(x, rng)
			m.end(ctx, locks, x, dedup, rng)
		case ctx.Err() != nil, errors.Is(err, core.ErrUnavailable), errors.Is(err, core.ErrHeld),
			closes && errors.Is(err, core.ErrClosed), dedup && errors.Is(err, core.ErrDuplicate):
		default:
			m.Errorf("acquire: %v", err)
		}
		cancel()
	}
}

func (m *model) hold(x *core.Lease, rng *rand.Rand) {
	d := time.Duration(rng.IntN(int(2 * time.Millisecond)))
	switch rng.IntN(16) {
	case 0:
		d = time.Duration(rng.IntN(int(2 * ttl)))
	case 1:
		d = 0
	case 2:
		m.trusted(x, "Check", x.Check(m.Context()))
	case 3:
		m.trusted(x, "Confirm", core.Confirm(x.Context()))
	}
	select {
	case <-time.After(d):
	case <-x.Context().Done():
		if rng.IntN(2) == 0 { // deaf work
			time.Sleep(d)
		}
	}
}

// trusted fails the test if a question was answered with yes while somebody else is trusted.
func (m *model) trusted(x *core.Lease, what string, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if err == nil && m.holder != x && x.Err() == nil {
		m.Errorf("%s says yes, and %v has it", what, m.holder)
	}
}

// end ends x, in every way there is, and what has re-entered it before or after it.
func (m *model) end(ctx context.Context, locks *core.Locker, x *core.Lease, dedup bool, rng *rand.Rand) {
	var inner *core.Lease
	if !dedup && rng.IntN(6) == 0 && x.Err() == nil {
		short, cancel := context.WithTimeout(x.Context(), time.Millisecond)
		defer cancel()
		y, err := m.reenter(short, locks, x)
		if inner = y; err == nil && rng.IntN(2) == 0 {
			m.back(y, x)
			m.ended(y.Release(ctx))
			inner = nil
		}
	}
	if inner == nil {
		m.leave(x)
	}
	switch {
	case dedup && rng.IntN(2) == 0:
		m.ended(x.Complete(ctx))
	case rng.IntN(4) == 0:
		m.ended(x.Finish(ctx, nil))
	default:
		m.ended(x.Release(ctx))
	}
	if inner != nil {
		time.Sleep(time.Duration(rng.IntN(int(time.Millisecond))))
		m.leave(inner)
		m.ended(inner.Release(ctx))
	}
	m.ended(x.Release(ctx)) // again
}

// reenter takes the name inside x, or as soon as it can be had if x has been lost.
func (m *model) reenter(ctx context.Context, locks *core.Locker, x *core.Lease) (*core.Lease, error) {
	y, err := locks.Acquire(ctx, "name")
	if err == nil && y.Fence() == x.Fence() {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.holder == x {
			m.holder = y
		}
		return y, nil
	}
	if err == nil {
		m.enter(y)
	}
	return y, err
}

// back says that y ends inside x.
func (m *model) back(y, x *core.Lease) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.holder == y && y.Fence() == x.Fence() {
		m.holder = x
	}
}

func (m *model) ended(err error) {
	if err != nil && !errors.Is(err, core.ErrLost) && !errors.Is(err, core.ErrUnavailable) {
		m.Errorf("the end of a lease: %v", err)
	}
}

// enter is called as soon as a lease is there: no other one may be trusted by then.
func (m *model) enter(x *core.Lease) {
	m.lease.Add(1)
	m.mu.Lock()
	defer m.mu.Unlock()
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
func (m *model) storm(link *lab.Net, rng *rand.Rand, calm <-chan struct{}) {
	ops := []lab.Op{
		lab.OpAcquire, lab.OpRenew, lab.OpRelease, lab.OpWait,
	}
	fates := []lab.Fate{
		lab.Refused, lab.RequestLost, lab.ReplyLost, lab.ReplyReset,
		lab.HeldBack, lab.ReplyHeldBack,
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
			link.All(lab.Delivered, op)
		default:
			link.Next(op, fate)
		}
	}
}
