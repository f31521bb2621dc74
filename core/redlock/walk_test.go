package redlock_test

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"

	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/redlock"
)

// walker is a process that asks, asks again, renews and releases as chance has it, and what it may believe.
type walker struct {
	*process
	rnd    *rand.Rand
	ttl    time.Duration
	fates  []lab.Fate // of messages
	who    string
	tokens int
	until  time.Time // the name is its own; zero if it is not
	leaves bool      // its token was released, and nothing else may come of it
	fences *fences   // of all processes; nil if they have none
}

// fences are the last one that was granted, and the token that has it.
type fences struct {
	last uint64
	of   string
}

func (f *fences) follows(token string, fence uint64) bool {
	grows := fence > f.last || fence == f.last && token == f.of
	f.last, f.of = max(f.last, fence), token
	return grows
}

func (w *walker) claim() driver.Claim {
	return driver.Claim{Name: "name", Token: fmt.Sprint(w.who, w.tokens), Label: w.who, TTL: w.ttl}
}

func (w *walker) trusts() bool { return time.Now().Before(w.until) }

// fates are what becomes of messages: most are delivered. The last one is for those whose clean-up goes on for long enough.
var fates = []lab.Fate{
	lab.Delivered, lab.Delivered, lab.Delivered, lab.Delivered, lab.Delivered, lab.Delivered,
	lab.Refused, lab.RequestLost, lab.ReplyLost, lab.ReplyReset, lab.HeldBack, lab.ReplyHeldBack, lab.RequestLate,
}

// befalls decides what becomes of the next messages. What was held back comes some time.
func (w *walker) befalls() {
	for _, l := range w.links {
		if w.rnd.IntN(3) == 0 {
			l.Deliver()
		}
		for _, op := range []lab.Op{lab.OpAcquire, lab.OpRenew, lab.OpRelease} {
			l.Next(op, w.fates[w.rnd.IntN(len(w.fates))])
		}
	}
}

// forgets has a node lose the name, if a quorum has it without that one for as long as it is trusted.
func (w *walker) forgets() {
	have := make(map[string][]int) // by the handle: some may be of another attempt
	for i, s := range w.m.stores {
		info, err := s.Inspect(w.m.t.Context(), "name")
		if ok(w.m.t, err); info.Remaining >= time.Until(w.until) {
			have[info.Handle] = append(have[info.Handle], i)
		}
	}
	for _, nodes := range have {
		if len(nodes) > len(w.m.stores)/2+1 {
			w.m.stores[nodes[w.rnd.IntN(len(nodes))]].Lose("name")
		}
	}
}

// step does one thing, and says what must not have come of it.
func (w *walker) step(other *walker) (wrong string) {
	c, began := w.claim(), time.Now()
	ctx := short(w.m.t, time.Second)
	switch what := w.rnd.IntN(10); {
	case what < 3 && !w.leaves && !w.until.IsZero() && !w.trusts(): // it has lost the name, and goes on without a release
		w.until = time.Time{}
		w.tokens++
	case what < 3 && w.trusts(): // it is renewed
		switch err := w.store.Renew(ctx, []driver.Claim{c})[0]; {
		case err == nil:
			w.until = began.Add(c.TTL)
		case errors.Is(err, driver.ErrNotOwner) && w.trusts():
			return fmt.Sprint("an owner is told that it is none: ", err)
		}
	case what < 4 && w.trusts():
		w.forgets()
	case what == 4 || w.leaves: // it is released, or leaves
		trusted := w.trusts()
		err := w.store.Release(ctx, c)
		w.until = time.Time{}
		if errors.Is(err, driver.ErrNotOwner) && trusted {
			return fmt.Sprint("an owner's release: ", err)
		}
		if w.leaves = driver.Explain(err).Open(); !w.leaves {
			w.tokens++
		}
	case what == 5 && !w.trusts(): // it leaves while it asks
		granted := make(chan bool)
		go func() {
			_, err := w.store.Acquire(ctx, c)
			granted <- err == nil
		}()
		time.Sleep(time.Duration(w.rnd.IntN(40)) * time.Millisecond)
		synctest.Wait()
		open := true
		select {
		case <-granted: // it was too late
			open = false
		default:
		}
		_ = w.store.Release(ctx, c)
		w.until, w.leaves = time.Time{}, true
		if open && <-granted {
			return "granted after its release"
		}
	default:
		g, err := w.store.Acquire(ctx, c)
		if held := driver.Explain(err).Held; held != nil && w.trusts() {
			return fmt.Sprintf("an owner is told of %+v", held)
		}
		if err != nil {
			return ""
		}
		if !g.Asked.IsZero() {
			began = g.Asked
		}
		if g.TTL > 0 {
			c.TTL = g.TTL
		}
		if w.fences != nil && !w.fences.follows(c.Token, g.Fence) {
			return fmt.Sprintf("fence %d does not follow", g.Fence)
		}
		if w.until = began.Add(c.TTL); other.trusts() {
			return "two owners"
		}
	}
	return ""
}

// ends has it give back what it may have.
func (w *walker) ends() (err error) {
	w.heal()
	for range 20 {
		if err = w.store.Release(short(w.m.t, time.Second), w.claim()); err == nil || errors.Is(err, driver.ErrNotOwner) {
			return nil
		}
	}
	return err
}

// Messages to each node are lost, refused, late or doubled, each by itself, nodes forget, and the counter of one is far ahead.
// Nevertheless a name has one owner, who is not told anything else, and has a larger fence than any before; and once messages arrive
// again nothing of anybody's attempts stays at any node.
func TestWhateverBecomesOfMessagesOneOwnsTheNameAndNothingStays(t *testing.T) {
	t.Parallel()
	grants := 0
	for seed := range uint64(160) {
		overNodes(t, 3+int(seed%3), func(t *testing.T, m *nodeSet) {
			rnd := rand.New(rand.NewPCG(seed, 7))
			var opts []redlock.Option
			var all *fences
			if seed%2 == 0 {
				opts, all = append(opts, redlock.WithFence()), new(fences)
				m.ahead(rnd.IntN(len(m.stores)), 1<<52)
			}
			life, may := time.Minute, fates
			short := seed%4 > 1 // so that leases are lost
			if short {
				life, may = 10*time.Second, fates[:len(fates)-1]
			}
			var walkers []*walker
			for _, who := range []string{"a", "b"} {
				w := &walker{process: m.process(opts...), rnd: rnd, who: who, fences: all, ttl: life, fates: may}
				for _, l := range w.links {
					l.Delay(time.Duration(rnd.IntN(15))*time.Millisecond, time.Duration(rnd.IntN(15))*time.Millisecond)
				}
				walkers = append(walkers, w)
			}
			for step := range 40 {
				n := rnd.IntN(2)
				w := walkers[n]
				w.befalls()
				if wrong := w.step(walkers[1-n]); wrong != "" {
					t.Errorf("seed %d, step %d: %s", seed, step, wrong)
				}
				if w.trusts() {
					grants++
				}
				time.Sleep(time.Duration(rnd.IntN(1500)) * time.Millisecond)
				if short && rnd.IntN(8) == 0 {
					time.Sleep(life)
				}
			}
			if short {
				time.Sleep(life) // of what was lost, only late messages are left
			}
			for _, w := range walkers {
				if err := w.ends(); err != nil {
					t.Errorf("seed %d: the last release: %v", seed, err)
				}
			}
			time.Sleep(3 * time.Second) // much less than a TTL
			if synctest.Wait(); m.taken() > 0 {
				t.Errorf("seed %d: taken at %d nodes", seed, m.taken())
			}
			for _, w := range walkers {
				if n := redlock.Votes(w.store); n != 0 && !short { // those of lost leases are thrown out later
					t.Errorf("seed %d: %d votes are left", seed, n)
				}
			}
		})
	}
	if grants < 500 {
		t.Errorf("only %d steps of owners", grants)
	}
}
