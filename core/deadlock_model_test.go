package core_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// tangles are how many programs of nested locks are played of each kind.
const tangles = 1500

// Random programs take locks inside of locks, in any order, with siblings, readers, permits and budgets.
// Whoever is told of a deadlock must be in one, by an account that the test keeps itself: no call that
// would have gone on gets the error. And where each name is locked in one way and nobody ever gives up, every
// program ends: no circle is missed.
func TestEveryDeadlockIsToldAndNothingElse(t *testing.T) {
	t.Parallel()
	var told sync.Map
	for _, kinds := range []string{"exclusive", "semaphores", "all kinds"} {
		t.Run(kinds, func(t *testing.T) {
			t.Parallel()
			for seed := range uint64(tangles) {
				t.Run(fmt.Sprint(seed), func(t *testing.T) {
					t.Parallel()
					synctest.Test(t, func(t *testing.T) {
						n := &tangle{T: t, draw: rand.New(rand.NewPCG(seed, 11)), kinds: kinds}
						if n.play() {
							told.Store(fmt.Sprint(kinds, seed), true)
						}
					})
				})
			}
		})
	}
	t.Cleanup(func() {
		found := 0
		told.Range(func(any, any) bool { found++; return true })
		if found > 1 && found < tangles/10 { // 1: -run has chosen one
			t.Errorf("only %d of %d programs had a deadlock", found, 3*tangles)
		}
	})
}

// tangle is a program of nested locks that is being played.
type tangle struct {
	*testing.T
	kinds string // nobody gives up, except with all kinds
	locks *core.Locker

	mu    sync.Mutex // protects the fields below
	draw  *rand.Rand
	waits []*wait
	told  bool
}

// kept is a lease, by the test's own account.
type kept struct {
	name   string
	shared bool
	limit  int
	root   *kept // that it has re-entered, or itself
	inside *kept // the lease whose slot it has; nil for a root
	ended  bool
}

// wait is a call that has not returned.
type wait struct {
	chain     []*kept // outermost first
	name      string
	shared    bool
	limit     int
	noReentry bool
	ends      time.Time // zero: never
}

// step is what a program does with one name.
type step struct {
	name      string
	opts      []core.Option
	shared    bool
	limit     int
	noReentry bool
	wait      time.Duration // 0: for ever
	before    time.Duration
	after     time.Duration
	inner     []*step
	siblings  bool // inner ones run together
}

func (n *tangle) play() bool {
	locks, err := core.New(memlock.New())
	if err != nil {
		n.Fatal(err)
	}
	n.locks = locks
	var programs []*step
	for range 2 + n.draw.IntN(4) {
		programs = append(programs, n.step(1+n.draw.IntN(3)))
	}
	over := make(chan struct{})
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	go func() {
		defer close(over)
		var all sync.WaitGroup
		for _, p := range programs {
			all.Go(func() { n.run(ctx, nil, p) })
		}
		all.Wait()
	}()
	select {
	case <-over:
	case <-time.After(24 * time.Hour):
		n.Error("a deadlock that nobody was told of")
		stop()
		<-over
	}
	if err := locks.Close(context.Background()); err != nil {
		n.Error(err)
	}
	return n.told
}

func (n *tangle) step(depth int) *step {
	d := n.draw
	pause := func() time.Duration { return time.Duration(d.IntN(20)) * time.Millisecond }
	p := &step{name: string(rune('a' + d.IntN(4))), limit: 1, before: pause(), after: pause()}
	switch {
	case n.kinds == "semaphores" && p.name < "c":
		p.limit = 2
		p.opts = append(p.opts, core.WithLimit(p.limit))
	case n.kinds == "all kinds":
		switch d.IntN(6) {
		case 0, 1:
			p.shared, p.opts = true, append(p.opts, core.WithShared())
		case 2:
			p.limit = 2 + d.IntN(2)
			p.opts = append(p.opts, core.WithLimit(p.limit))
		}
		p.wait = time.Duration(20+d.IntN(500)) * time.Millisecond
		p.opts = append(p.opts, core.WithWait(p.wait))
	}
	if d.IntN(5) == 0 {
		p.noReentry, p.opts = true, append(p.opts, core.WithoutReentry())
	}
	if depth > 1 {
		for range 1 + d.IntN(2) {
			p.inner = append(p.inner, n.step(depth-1))
		}
		p.siblings = d.IntN(3) == 0
	}
	return p
}

func (n *tangle) run(ctx context.Context, chain []*kept, p *step) {
	time.Sleep(p.before)
	w := n.begin(chain, p)
	err := n.locks.Do(ctx, p.name, func(ctx context.Context) error {
		mine := n.granted(w, p)
		defer n.ended(mine)
		inside := append(slices.Clone(chain), mine)
		var together sync.WaitGroup
		for _, q := range p.inner {
			if p.siblings {
				together.Go(func() { n.run(ctx, inside, q) })
			} else {
				n.run(ctx, inside, q)
			}
		}
		together.Wait()
		time.Sleep(p.after)
		return nil
	}, p.opts...)
	n.failed(w, err)
}

func (n *tangle) begin(chain []*kept, p *step) *wait {
	n.mu.Lock()
	defer n.mu.Unlock()
	w := &wait{chain: chain, name: p.name, shared: p.shared, limit: p.limit, noReentry: p.noReentry}
	if p.wait > 0 {
		w.ends = time.Now().Add(p.wait)
	}
	n.waits = append(n.waits, w)
	return w
}

// outer is the lease that a call re-enters, or nil.
func (w *wait) outer() *kept {
	if w.noReentry {
		return nil
	}
	for _, k := range slices.Backward(w.chain) {
		if k.name == w.name {
			return k
		}
	}
	return nil
}

func (n *tangle) granted(w *wait, p *step) *kept {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.waits = slices.DeleteFunc(n.waits, func(v *wait) bool { return v == w })
	k := &kept{name: p.name, shared: p.shared, limit: p.limit}
	if k.root = k; w.outer() != nil {
		k.inside = w.outer()
		k.root = k.inside.root
	}
	return k
}

func (n *tangle) ended(k *kept) {
	n.mu.Lock()
	defer n.mu.Unlock()
	k.ended = true
}

func (n *tangle) failed(w *wait, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if errors.Is(err, core.ErrDeadlock) {
		n.told = true
		if !n.stuck(w) {
			n.Errorf("told of a deadlock in which it is not: %v\n%s", err, n.account(w))
		}
	} else if err != nil && !errors.Is(err, core.ErrHeld) && !errors.Is(err, core.ErrInvalid) && !errors.Is(err, context.Canceled) {
		n.Errorf("%v", err)
	}
	n.waits = slices.DeleteFunc(n.waits, func(v *wait) bool { return v == w })
}

// account lists the calls that have not returned.
func (n *tangle) account(w *wait) (text string) {
	for _, v := range n.waits {
		text += fmt.Sprintf("told=%t waits for %q, shared=%t limit=%d ends=%s, holding", v == w, v.name, v.shared, v.limit, v.ends.Format("05.000"))
		for _, k := range v.chain {
			text += fmt.Sprintf(" %q(shared=%t limit=%d ended=%t)", k.name, k.root.shared, k.root.limit, k.ended)
		}
		text += "\n"
	}
	return text + "now " + time.Now().Format("05.000")
}

// stuck says whether w cannot go on before it gives up, if all do what they have begun: it is among the
// calls that wait at least as long as w, and for one another.
func (n *tangle) stuck(w *wait) bool {
	var among []*wait
	for _, v := range n.waits {
		if v.ends.IsZero() || !w.ends.IsZero() && !v.ends.Before(w.ends) {
			among = append(among, v)
		}
	}
	for {
		before := len(among)
		kept := slices.Clone(among)
		among = slices.DeleteFunc(among, func(v *wait) bool { return !v.blockedBy(kept) })
		if len(among) == before {
			return slices.Contains(among, w)
		}
	}
}

// blockedBy says whether w cannot go on as long as none of the others does.
func (w *wait) blockedBy(others []*wait) bool {
	outer := w.outer()
	permits := make(map[*kept]bool)
	limit := w.limit
	for _, v := range others {
		for _, k := range v.chain {
			switch {
			case k.ended || k.name != w.name:
			case outer != nil:
				if k.inside == outer {
					return true
				}
			case k.root.shared && w.shared:
			case k.root.limit > 1 && w.limit > 1:
				permits[k.root] = true
				limit = min(limit, k.root.limit)
			default:
				return true
			}
		}
	}
	return len(permits) > 0 && len(permits) >= limit
}
