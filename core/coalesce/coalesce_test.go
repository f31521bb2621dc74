package coalesce

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"go.uber.org/goleak"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/internal/backendtest"
	"github.com/holdfast-go/holdfast/core/internal/lab"
	"github.com/holdfast-go/holdfast/core/memlock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func newLocker(t *testing.T, d driver.Driver, opts ...core.NewOption) *core.Locker {
	t.Helper()
	l, err := core.New(d, opts...)
	backendtest.OK(t, err)
	t.Cleanup(func() { backendtest.OK(t, l.Close(context.Background())) })
	return l
}

// newGroup is the group of one process.
func newGroup(t *testing.T, d driver.Driver, opts ...core.NewOption) *Group {
	t.Helper()
	g, err := New(newLocker(t, d, opts...))
	backendtest.OK(t, err)
	return g
}

func reindex(self string) Call {
	return Call{Name: "index", Work: "reindex", Self: self, Wait: core.WaitForever}
}

func mustNotRun(t *testing.T) func(context.Context) error {
	t.Helper()
	return func(context.Context) error {
		t.Error("it ran")
		return nil
	}
}

// history counts what happens, in order.
type history struct {
	now     atomic.Int64
	mu      sync.Mutex // protects the rest
	inside  int
	begun   []int64          // when runs began
	covered map[string]int64 // the calls that were, and when they began
}

func (h *history) work(t *testing.T, length time.Duration) func(context.Context) error {
	t.Helper()
	return func(context.Context) error {
		h.mu.Lock()
		h.inside++
		if h.inside > 1 {
			t.Error("two runs at once")
		}
		h.begun = append(h.begun, h.now.Add(1))
		h.mu.Unlock()
		time.Sleep(length)
		h.mu.Lock()
		h.inside--
		h.mu.Unlock()
		return nil
	}
}

// Every call that is covered is followed by a run that begins after it, whatever the order of answers.
func TestNoRunIsMissed(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) { play(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func play(t *testing.T, random *rand.Rand) {
	t.Helper()
	var mu sync.Mutex
	upTo := func(d time.Duration) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(random.Int64N(int64(d)))
	}
	link := lab.New(memlock.New()) // what it answers may be old
	groups := []*Group{newGroup(t, link), newGroup(t, link)}
	var jitter *time.Timer
	jitter = time.AfterFunc(time.Hour, func() { // no two messages take the same time
		link.Delay(upTo(10*time.Millisecond), upTo(10*time.Millisecond))
		jitter.Reset(time.Millisecond)
	})
	jitter.Reset(0)
	defer jitter.Stop()
	every, longest := 1+upTo(20*time.Millisecond), 1+upTo(20*time.Millisecond)
	h := &history{covered: make(map[string]int64)}
	var wg sync.WaitGroup
	for i := range 8 { // few, since later ones would cover for those that are missed
		time.Sleep(upTo(every))
		group, id, length := groups[upTo(2)], fmt.Sprint(i), upTo(longest)
		wg.Go(func() {
			came := h.now.Add(1)
			err := group.Do(t.Context(), reindex(id), h.work(t, length))
			switch {
			case errors.Is(err, ErrCovered):
				h.mu.Lock()
				h.covered[id] = came
				h.mu.Unlock()
			case err != nil:
				t.Errorf("%s: %v", id, err)
			}
		})
	}
	wg.Wait()
	for id, came := range h.covered {
		if last := h.begun[len(h.begun)-1]; last < came {
			t.Errorf("call %s, made at %d, was covered, and the last run began at %d", id, came, last)
		}
	}
}

func TestManyCallsDuringARunLeadToExactlyOneMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		groups := []*Group{newGroup(t, store), newGroup(t, store), newGroup(t, store)}
		h := &history{}
		var wg sync.WaitGroup
		for i := range 100 {
			wg.Go(func() {
				err := groups[i%3].Do(t.Context(), reindex(""), h.work(t, time.Minute))
				if err != nil && (i == 0 || !errors.Is(err, ErrCovered)) {
					t.Error(err)
				}
			})
			if i == 0 {
				synctest.Wait() // it runs
			}
			if i == 50 {
				time.Sleep(time.Second)
			}
		}
		wg.Wait()
		if len(h.begun) != 2 {
			t.Errorf("%d runs", len(h.begun))
		}
	})
}

// A process that shared the answer to an attempt among its calls would cover a call with one that was under way before.
func TestAnAnswerFromBeforeTheCallCoversNothing(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, h := memlock.New(), &history{}
		link := lab.New(store)
		here, there := newGroup(t, link), newGroup(t, store)
		free := take(t, store, "index", "somebody")
		outcome := map[string]error{}
		var wg sync.WaitGroup
		call := func(g *Group, who string) {
			wg.Go(func() {
				err := g.Do(t.Context(), reindex(""), h.work(t, time.Minute))
				h.mu.Lock()
				defer h.mu.Unlock()
				outcome[who] = err
			})
			synctest.Wait()
		}
		call(there, "waits")
		link.Delay(0, time.Second)
		call(here, "looks") // the answer is on its way
		link.Delay(0, 0)
		free()
		synctest.Wait() // the one that waited runs
		call(here, "comes later")
		wg.Wait()
		// The place that the later one finds free may go to the first one in this process's line. Either of them runs then, after
		// both calls, and covers the other. If both were covered, the later one would miss its run.
		covered := 0
		for _, who := range []string{"looks", "comes later"} {
			switch err := outcome[who]; {
			case errors.Is(err, ErrCovered):
				covered++
			case err != nil:
				t.Errorf("%s: %v", who, err)
			}
		}
		if len(h.begun) != 2 || outcome["waits"] != nil || covered != 1 {
			t.Errorf("%d runs, %v", len(h.begun), outcome)
		}
	})
}

func TestOtherWorkUnderTheNameIsNotCovered(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		group, h := newGroup(t, memlock.New()), &history{}
		var wg sync.WaitGroup
		ran := make([]bool, 6)
		for i, work := range []string{"a", "a", "a:b", "a:b", "a", "a:b"} {
			wg.Go(func() {
				c := reindex(fmt.Sprint(i))
				c.Work = work
				ran[i] = group.Do(t.Context(), c, h.work(t, time.Minute)) == nil
			})
			synctest.Wait()
		}
		wg.Wait()
		if fmt.Sprint(ran) != "[true true true false false false]" {
			t.Errorf("ran: %v", ran)
		}
	})
}

func TestWorkRunsOnlyOnceItsPlaceIsKnownToBeFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		link := lab.New(memlock.New())
		link.All(lab.RequestLost, lab.OpRelease)
		if err := newGroup(t, link).Do(t.Context(), reindex("1"), mustNotRun(t)); !errors.Is(err, core.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		link.Heal()
	})
}

// What the waiter's lock says, it says to all processes, or nothing.
func TestWorkDoesNotRunWithoutTheServiceWhateverThePolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		group := newGroup(t, fallback.New(store), core.OnUnavailable(core.LocalOnly))
		store.SetDown(true)
		for range 2 { // the second one knows of the outage
			if err := group.Do(t.Context(), reindex("1"), mustNotRun(t)); !errors.Is(err, core.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
		}
	})
}

func TestACallIsNotCoveredByItsOwnEarlierAttempt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		free := take(t, store, reindex("1").place(), "1")
		group, h := newGroup(t, store), &history{}
		if err := group.Do(t.Context(), reindex("2"), h.work(t, 0)); !errors.Is(err, ErrCovered) {
			t.Errorf("a duplicate: %v", err)
		}
		short := reindex("1")
		short.Wait = time.Minute
		if err := group.Do(t.Context(), short, h.work(t, 0)); !errors.Is(err, core.ErrHeld) || len(h.begun) != 0 {
			t.Errorf("the call itself: %v, %d runs", err, len(h.begun))
		}
		time.AfterFunc(40*time.Second, free)
		other, began := take(t, store, "index", ""), time.Now()
		if err := group.Do(t.Context(), short, h.work(t, 0)); !errors.Is(err, core.ErrHeld) || time.Since(began) != time.Minute {
			t.Errorf("it waits for its place, and for the name: %v after %s", err, time.Since(began))
		}
		other()
		if err := group.Do(t.Context(), reindex("1"), h.work(t, 0)); err != nil || len(h.begun) != 1 {
			t.Errorf("once its earlier attempt has left: %v, %d runs", err, len(h.begun))
		}
	})
}

// take takes a name for a process that is not there any more.
func take(t *testing.T, d driver.Driver, name, label string) (free func()) {
	t.Helper()
	x := backendtest.Acquire(t, newLocker(t, d), name, core.WithLabel(label))
	free = func() { backendtest.OK(t, x.Release(context.Background())) }
	t.Cleanup(free)
	return free
}

func TestAWaiterIsOneAndFreeAtOnceWhateverTheDefaults(t *testing.T) {
	t.Parallel()
	for what, option := range map[string]core.Option{
		"min-hold": core.WithMinHold(time.Hour), "shared": core.WithShared(), "limit": core.WithLimit(5),
	} {
		g := newGroup(t, memlock.New(), option)
		for range 2 {
			if err := g.waiters.Do(t.Context(), "place", func(context.Context) error {
				_, err := g.waiters.TryAcquire(t.Context(), "place")
				return err
			}); !errors.Is(err, core.ErrHeld) {
				t.Errorf("%s: a second one waits: %v", what, err)
			}
		}
	}
}

func TestPlacesHaveNamesOfNoKeyAndOfNoOther(t *testing.T) {
	t.Parallel()
	l := newLocker(t, memlock.New())
	seen := make(map[string]string)
	for _, work := range []string{"", "a", "a:b", "%", "\x00", "\xff", strings.Repeat("x", 1<<12)} {
		for _, name := range []string{
			"a", "order:42", "a%20b", strings.Repeat("x", 127), strings.Repeat("x", 128), strings.Repeat("x", 129),
			strings.Repeat("x", 200), strings.Repeat("é", 100), "x" + strings.Repeat("日", 66), Call{Name: "a", Work: "b"}.place(),
		} {
			got, from := Call{Name: name, Work: work}.place(), fmt.Sprintf("the place of %.40q, %q", work, name)
			if other, ok := seen[got]; ok {
				t.Errorf("%s is %s", from, other)
			}
			seen[got] = from
			if !strings.Contains(got, "%waiter-") || !utf8.ValidString(got) {
				t.Errorf("%s is %q", from, got)
			}
			if err := l.Do(t.Context(), got, func(context.Context) error { return nil }); err != nil {
				t.Errorf("%s: %v", from, err)
			}
		}
	}
}

func TestWhatCannotWorkIsRefused(t *testing.T) {
	t.Parallel()
	locks, dedup := newLocker(t, memlock.New()), core.WithDedup(time.Hour)
	group, ran := newGroup(t, memlock.New()), mustNotRun(t)
	second := func(_ *Group, err error) error { return err }
	for what, err := range map[string]error{
		"no Locker":     second(New(nil)),
		"a nil option":  second(New(locks, nil)),
		"dedup":         second(New(locks, dedup)),
		"dedup before":  second(New(newLocker(t, memlock.New(), dedup))),
		"no work":       group.Do(t.Context(), Call{Name: "index"}, nil),
		"no name":       group.Do(t.Context(), Call{Work: "reindex"}, ran),
		"no UTF-8":      group.Do(t.Context(), Call{Name: strings.Repeat("\x80", 200)}, ran),
		"a long self":   group.Do(t.Context(), reindex(strings.Repeat("x", 257)), ran),
		"negative wait": group.Do(t.Context(), Call{Name: "index", Wait: -1}, ran),
		"endless wait":  group.Do(t.Context(), Call{Name: "index", Wait: core.WaitForever - 1}, ran),
	} {
		if !errors.Is(err, core.ErrInvalid) {
			t.Errorf("%s: %v", what, err)
		}
	}
}
