package contend

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/call"
	"github.com/holdfast-go/holdfast/core/internal/claim"
	"github.com/holdfast-go/holdfast/core/internal/clock"
	"github.com/holdfast-go/holdfast/core/internal/hold"
	"github.com/holdfast-go/holdfast/core/internal/tasks"
	"github.com/holdfast-go/holdfast/core/internal/term"
)

// site is what the work of all processes goes to.
type site struct {
	t    testing.TB
	busy atomic.Pointer[job]
	last atomic.Uint64 // the largest fence
	done atomic.Int64
}

// job is one piece of work. It ends when it is stopped, before anybody else may begin.
type job struct {
	site    *site
	name    string
	working atomic.Bool
}

func (j *job) Stop(term.Loss) { j.end() }

func (j *job) Values() context.Context { return nil }

func (j *job) end() {
	if j.working.CompareAndSwap(true, false) && !j.site.busy.CompareAndSwap(j, nil) {
		j.site.t.Errorf("%s ends, and somebody else works", j.name)
	}
}

func (j *job) begin(fence uint64) {
	j.working.Store(true)
	if other := j.site.busy.Swap(j); other != nil {
		j.site.t.Errorf("%s begins while %s works", j.name, other.name)
	}
	if old := j.site.last.Swap(fence); old >= fence {
		j.site.t.Errorf("%s has fence %d after %d", j.name, fence, old)
	}
}

// do runs fn under a hold of n.
func do(ctx context.Context, r *Room, s *site, who string, w hold.Want, budget time.Duration, fn func()) error {
	j := &job{site: s, name: who}
	w.Work = j
	h, err := get(ctx, r, &w, budget)
	if err != nil {
		return err
	}
	if left, _ := h.Left(r.Port.Clock.Read()); left > 0 {
		j.begin(h.Fence())
		fn()
		j.end()
		s.done.Add(1)
	}
	leave(ctx, r, h, claim.Left{})
	return nil
}

func newRoom(d driver.Driver) (*Room, context.CancelFunc) {
	life, end := context.WithCancel(context.Background())
	return NewRoom(life, call.New(d, clock.New(), tasks.New())), end
}

// settle waits until nothing is under way in a room.
func settle(t *testing.T, rooms ...*Room) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	for i, r := range rooms {
		if err := r.Port.Tasks.Wait(ctx); err != nil {
			t.Errorf("room %d: %d tasks", i, r.Port.Tasks.Count())
		}
		if n, lines := r.Table.Waiting(); n+lines+r.Dog.Count() > 0 {
			t.Errorf("room %d: %d wait in %d lines, %d are watched", i, n, lines, r.Dog.Count())
		}
	}
}

func TestManyGoroutinesOfManyProcessesWorkOneAtATime(t *testing.T) {
	t.Parallel()
	for _, deaf := range []bool{false, true} {
		m, s := newMemory(), &site{t: t}
		m.deaf = deaf
		var all sync.WaitGroup
		var rooms []*Room
		turns := 200
		if deaf {
			turns = 20
		}
		for p := range 3 {
			r, end := newRoom(m)
			defer end()
			rooms = append(rooms, r)
			for g := range 8 {
				all.Go(func() {
					for range turns {
						w := hold.Want{Name: "n", Terms: &hold.Terms{Wish: claim.Wish{TTL: 3 * time.Second}, Turn: term.Turn{Every: time.Second}}}
						if err := do(context.Background(), r, s, fmt.Sprint(p, g), w, Forever, func() {}); err != nil {
							t.Error(err)
						}
					}
				})
			}
		}
		all.Wait()
		settle(t, rooms...)
		if owned, queued := m.left(); owned+queued > 0 || s.done.Load() != int64(24*turns) {
			t.Errorf("deaf %t: %d owned, %d queued, %d done", deaf, owned, queued, s.done.Load())
		}
		t.Logf("deaf %t: %d turns, %d commands", deaf, s.done.Load(), m.commands())
	}
}

// wishes are what callers want in the storm.
func wish(rng *rand.Rand) hold.Want {
	ttl := []time.Duration{300 * time.Millisecond, 3 * time.Second, 30 * time.Second}[rng.IntN(3)]
	w := hold.Want{Name: "n", Terms: &hold.Terms{Wish: claim.Wish{TTL: ttl, Label: ttl.String()}, Turn: term.Turn{Every: ttl / 3}}}
	switch rng.IntN(8) {
	case 0:
		w.MinHold = 20 * time.Millisecond
	case 1:
		w.NoRenewal, w.Turn.Every = true, 0
	case 2:
		w.Turn.MaxHold = 5 * time.Millisecond
	}
	return w
}

func TestAStormInVirtualTimeWorksOneAtATimeAndLeavesNothing(t *testing.T) {
	t.Parallel()
	for seed := range uint64(40) {
		synctest.Test(t, func(t *testing.T) { storm(t, seed) })
	}
}

func storm(t *testing.T, seed uint64) {
	t.Helper()
	m, s := newMemory(), &site{t: t}
	m.deaf = seed%4 == 3
	var mu sync.Mutex
	faults := rand.New(rand.NewPCG(seed, 1))
	m.faulty = func() (bool, time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		late := time.Duration(faults.IntN(2000)) * time.Microsecond
		switch faults.IntN(40) {
		case 0:
			late = time.Duration(faults.IntN(300)) * time.Millisecond
		case 1:
			return true, late
		}
		return false, late
	}
	var all sync.WaitGroup
	var rooms []*Room
	for p := range 3 {
		r, end := newRoom(m)
		defer end()
		rooms = append(rooms, r)
		for g := range 6 {
			rng := rand.New(rand.NewPCG(seed, uint64(10*p+g)))
			all.Go(func() {
				for range 12 {
					ctx, cancel := context.WithCancel(context.Background())
					if rng.IntN(4) == 0 {
						time.AfterFunc(time.Duration(rng.IntN(100))*time.Millisecond, cancel)
					}
					budget := []time.Duration{Forever, Forever, 0, 200 * time.Millisecond}[rng.IntN(4)]
					err := do(ctx, r, s, fmt.Sprint(p, g), wish(rng), budget, func() {
						time.Sleep(time.Duration(rng.IntN(12)) * time.Millisecond)
					})
					var held *Held
					if err != nil && budget == Forever && ctx.Err() == nil && !errors.As(err, &held) && !driver.Explain(err).Open() {
						t.Errorf("seed %d: %v", seed, err)
					}
					cancel()
					time.Sleep(time.Duration(rng.IntN(20)) * time.Millisecond)
				}
			})
		}
	}
	began := time.Now()
	all.Wait()
	if took := time.Since(began); took > 2*time.Minute {
		t.Errorf("seed %d: took %s", seed, took)
	}
	settle(t, rooms...)
	time.Sleep(time.Minute)
	if owned, queued := m.left(); owned+queued > 0 {
		t.Errorf("seed %d: %d owned, %d queued", seed, owned, queued)
	}
	if s.done.Load() == 0 {
		t.Errorf("seed %d: nobody has worked", seed)
	}
}

func TestAThousandWaitersThatLeaveAtOnceCostThreeCommands(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, s := newMemory(), &site{t: t}
		a, endA := newRoom(m)
		defer endA()
		b, endB := newRoom(m)
		defer endB()
		w := hold.Want{Name: "n", Terms: &hold.Terms{Wish: claim.Wish{TTL: 3 * time.Second}, Turn: term.Turn{Every: time.Second}}}
		if err := do(t.Context(), a, s, "a", w, Forever, func() {
			before := m.commands()
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			var all sync.WaitGroup
			for i := range 1000 {
				all.Go(func() {
					if err := do(ctx, b, s, fmt.Sprint(i), w, Forever, func() {}); !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
					}
				})
			}
			all.Wait()
			settle(t, b)
			if n := m.commands() - before; n > 3 {
				t.Errorf("%d commands", n)
			}
		}); err != nil {
			t.Error(err)
		}
		settle(t, a)
	})
}
