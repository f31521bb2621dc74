package taskmw

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/hibiken/asynq"

	"github.com/holdfast-go/holdfast/core"
	"github.com/holdfast-go/holdfast/core/driver"
	"github.com/holdfast-go/holdfast/core/fallback"
	"github.com/holdfast-go/holdfast/core/memlock"
)

// far is a memory backend at the end of a slow network: what it answers may be old.
type far struct {
	*memlock.Store
	trip func() time.Duration
	fail func(op string, c driver.Claim) error // after the operation, instead of its answer
}

func (f *far) Capabilities() driver.Capabilities {
	c := f.Store.Capabilities()
	c.Punctual = false
	return c
}

func (f *far) travel() {
	if f.trip != nil {
		time.Sleep(f.trip())
	}
}

func (f *far) Acquire(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return f.ask(ctx, c, f.Store.Acquire)
}

func (f *far) Wait(ctx context.Context, c driver.Claim) (driver.Grant, error) {
	return f.ask(ctx, c, f.Store.Wait)
}

func (f *far) ask(ctx context.Context, c driver.Claim, do func(context.Context, driver.Claim) (driver.Grant, error)) (driver.Grant, error) {
	f.travel()
	g, err := do(ctx, c)
	f.travel()
	if f.fail != nil {
		if lost := f.fail("acquire", c); lost != nil {
			return driver.Grant{}, lost
		}
	}
	return g, err
}

func (f *far) Release(ctx context.Context, c driver.Claim) error {
	f.travel()
	err := f.Store.Release(ctx, c)
	f.travel()
	if f.fail != nil {
		if lost := f.fail("release", c); lost != nil {
			return lost
		}
	}
	return err
}

// process is one process with a Coalesce rule of its own.
func process(t *testing.T, d driver.Driver, opts ...core.Option) *Door {
	t.Helper()
	l, err := core.New(d)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := l.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	door, err := New(l, WithType("*", "index", append(opts, OnConflict(Coalesce))...))
	if err != nil {
		t.Fatal(err)
	}
	return door
}

// deliver is what a server does with a task: its context cannot be made outside of asynq.
func deliver(ctx context.Context, d *Door, taskType, id string, work asynq.HandlerFunc) error {
	v := &delivery{
		door: d, rule: d.match(taskType), ctx: ctx, task: asynq.NewTask(taskType, nil), next: work,
		name: "index", label: label(taskType, id),
	}
	return v.process()
}

// history counts what happens, in order.
type history struct {
	now    atomic.Int64
	mu     sync.Mutex // protects the rest
	inside int
	begun  []int64          // when runs began
	ended  map[string]int64 // what ended unrun, and when it was delivered
}

func (h *history) work(t *testing.T, ran *bool, length time.Duration) asynq.HandlerFunc {
	t.Helper()
	return func(context.Context, *asynq.Task) error {
		*ran = true
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

// Every task that ends unrun is followed by a run that begins after its delivery, whatever
// the order of answers. Without the gate some are not: core shares old answers.
func TestCoalesceLosesNoRun(t *testing.T) {
	t.Parallel()
	for seed := range uint64(1000) {
		synctest.Test(t, func(t *testing.T) { playCoalesce(t, rand.New(rand.NewPCG(seed, 1))) })
	}
}

func playCoalesce(t *testing.T, random *rand.Rand) {
	t.Helper()
	var mu sync.Mutex
	upTo := func(d time.Duration) time.Duration {
		mu.Lock()
		defer mu.Unlock()
		return time.Duration(random.Int64N(int64(d)))
	}
	store := &far{Store: memlock.New(), trip: func() time.Duration { return upTo(10 * time.Millisecond) }}
	doors := []*Door{process(t, store), process(t, store)}
	every, longest := 1+upTo(20*time.Millisecond), 1+upTo(20*time.Millisecond)
	h := &history{ended: make(map[string]int64)}
	var wg sync.WaitGroup
	for i := range 8 { // few, since later ones would cover for those that are lost
		time.Sleep(upTo(every))
		door, id, length := doors[upTo(2)], fmt.Sprint(i), upTo(longest)
		wg.Go(func() {
			ran, delivered := false, h.now.Add(1)
			if err := deliver(t.Context(), door, "reindex", id, h.work(t, &ran, length)); err != nil {
				t.Errorf("%s: %v", id, err)
			}
			if !ran {
				h.mu.Lock()
				h.ended[id] = delivered
				h.mu.Unlock()
			}
		})
	}
	wg.Wait()
	for id, delivered := range h.ended {
		if last := h.begun[len(h.begun)-1]; last < delivered {
			t.Errorf("task %s, delivered at %d, ended unrun, and the last run began at %d", id, delivered, last)
		}
	}
}

func TestCoalesceEndsDuplicatesInExactlyOneRunMore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		doors := []*Door{process(t, store), process(t, store), process(t, store)}
		h := &history{}
		var wg sync.WaitGroup
		ran := make([]bool, 100)
		for i := range ran {
			wg.Go(func() {
				if err := deliver(t.Context(), doors[i%3], "reindex", fmt.Sprint(i), h.work(t, &ran[i], time.Minute)); err != nil {
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
		if len(h.begun) != 2 || !ran[0] {
			t.Errorf("%d runs, the first one's: %t", len(h.begun), ran[0])
		}
	})
}

func TestCoalesceKeepsTypesApart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		door := process(t, memlock.New())
		h := &history{}
		var wg sync.WaitGroup
		ran := make([]bool, 6)
		for i, taskType := range []string{"a", "a", "a:b", "a:b", "a", "a:b"} {
			wg.Go(func() {
				if err := deliver(t.Context(), door, taskType, fmt.Sprint(i), h.work(t, &ran[i], time.Minute)); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		wg.Wait()
		if fmt.Sprint(ran) != "[true true true false false false]" {
			t.Errorf("ran: %v", ran)
		}
	})
}

func TestCoalesceRunsOnlyOnceItKnowsThatTheSeatIsFree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		lost := errors.New("connection lost")
		store := &far{Store: memlock.New(), fail: func(op string, c driver.Claim) error {
			if op == "release" && strings.Contains(c.Name, "%seat-") {
				return lost
			}
			return nil
		}}
		err := deliver(t.Context(), process(t, store), "reindex", "1", func(context.Context, *asynq.Task) error {
			t.Error("it ran")
			return nil
		})
		if !errors.Is(err, core.ErrUnavailable) || isFinal(err) || errors.Is(err, ErrConflict) {
			t.Errorf("got %v", err)
		}
	})
}

// The seat and the gate say something to all processes, or nothing.
func TestCoalesceFailsClosedWhateverTheLockersPolicy(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		l, err := core.New(fallback.New(store), core.OnUnavailable(core.LocalOnly))
		if err != nil {
			t.Fatal(err)
		}
		door, err := New(l, WithType("*", "index", OnConflict(Coalesce)))
		if err != nil {
			t.Fatal(err)
		}
		store.SetDown(true)
		for range 2 { // the second one knows of the outage
			err := deliver(t.Context(), door, "reindex", "1", func(context.Context, *asynq.Task) error {
				t.Error("it ran")
				return nil
			})
			if !errors.Is(err, core.ErrUnavailable) || isFinal(err) || errors.Is(err, ErrConflict) {
				t.Errorf("got %v", err)
			}
		}
		if err := l.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestCoalesceDoesNotTrustALookBehindALostGate(t *testing.T) {
	t.Parallel()
	for _, late := range []time.Duration{0, 5 * time.Second} { // before, and after, a renewal has noticed
		synctest.Test(t, func(t *testing.T) {
			store := &far{Store: memlock.New()}
			hold(t, store, derived("seat", "reindex", "index"), core.WithLabel(label("reindex", "1")))
			var gate driver.Claim
			store.fail = func(op string, c driver.Claim) error {
				switch {
				case op != "acquire":
				case strings.Contains(c.Name, "%gate-"):
					gate = c
				default:
					_ = store.Store.Release(context.Background(), gate) // an operator's DEL; of a repeat, nothing
					time.Sleep(late)
				}
				return nil
			}
			err := deliver(t.Context(), process(t, store), "reindex", "2", nil)
			if err == nil || isFinal(err) {
				t.Errorf("the task ended: %v", err)
			}
		})
	}
}

func TestCoalesceOfATaskInItsOwnSeatIsRetried(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		free := hold(t, store, derived("seat", "reindex", "index"), core.WithLabel(label("reindex", "1")))
		door, runs := process(t, store), 0
		work := func(context.Context, *asynq.Task) error { runs++; return nil }
		if err := deliver(t.Context(), door, "reindex", "1", work); !errors.Is(err, ErrConflict) {
			t.Errorf("the task itself: %v", err)
		}
		if err := deliver(t.Context(), door, "reindex", "2", work); err != nil || runs != 0 {
			t.Errorf("a duplicate: %v, %d runs", err, runs)
		}
		// On its last attempt it waits until its earlier delivery has left the seat.
		time.AfterFunc(time.Minute, free)
		v := &delivery{door: &Door{log: slog.New(slog.DiscardHandler)},
			patience: patience{waits: true, last: true}, rule: door.match("reindex"), ctx: t.Context(),
			task: asynq.NewTask("reindex", nil), next: asynq.HandlerFunc(work), name: "index", label: label("reindex", "1"),
		}
		if err := v.process(); err != nil || runs != 1 {
			t.Errorf("on its last attempt: %v, %d runs", err, runs)
		}
	})
}

// hold takes a name, for a process that is not there any more.
func hold(t *testing.T, d driver.Driver, name string, opts ...core.Option) (free func()) {
	t.Helper()
	l, err := core.New(d)
	if err != nil {
		t.Fatal(err)
	}
	x, err := l.TryAcquire(t.Context(), name, opts...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := errors.Join(x.Release(context.Background()), l.Close(context.Background())); err != nil {
			t.Error(err)
		}
	})
	return func() {
		if err := x.Release(context.Background()); err != nil {
			t.Error(err)
		}
	}
}

func TestDerivedNamesAreThoseOfNoKeyAndOfNoOther(t *testing.T) {
	t.Parallel()
	l, err := core.New(memlock.New())
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[string]string)
	for _, taskType := range oddTexts {
		for _, name := range []string{
			"a", "order:42", "a%20b", strings.Repeat("x", 129), strings.Repeat("x", 130), strings.Repeat("x", 131),
			strings.Repeat("x", 200), strings.Repeat("é", 100), "x" + strings.Repeat("日", 66), "order%seat-", derived("seat", "a", "b"),
		} {
			for _, what := range []string{"seat", "gate"} {
				got, from := derived(what, taskType, name), fmt.Sprintf("%s of %q, %q", what, taskType, name)
				if other, ok := seen[got]; ok {
					t.Errorf("%s is %s", from, other)
				}
				seen[got] = from
				if !strings.Contains(got, "%"+what+"-") || !utf8.ValidString(got) {
					t.Errorf("%s is %q", from, got)
				}
				x, err := l.TryAcquire(t.Context(), got)
				if err != nil {
					t.Errorf("%s: %v", from, err)
					continue
				}
				if err := x.Release(t.Context()); err != nil {
					t.Error(err)
				}
			}
		}
	}
	if err := l.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

// A request holds the name, and a task waits for it in the seat. Then the request hands the name to a
// second task, which is delivered at once.
func TestAHandoffOfATaskThatEndsForAnotherOneGoesToThatOne(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New()
		door := process(t, store)
		locks, err := core.New(store)
		if err != nil {
			t.Fatal(err)
		}
		defer locks.Close(context.Background()) //nolint:errcheck // a test's end
		request, err := locks.Acquire(t.Context(), "index")
		if err != nil {
			t.Fatal(err)
		}
		waited := make(chan error, 1)
		go func() {
			waited <- deliver(t.Context(), door, "reindex", "waiter", func(context.Context, *asynq.Task) error { return nil })
		}()
		synctest.Wait()
		handoff, err := request.Detach(t.Context(), 10*time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		handed := time.Now()
		h := &delivery{
			door: door, rule: door.match("reindex"), ctx: t.Context(), handoff: handoff,
			task: asynq.NewTask("reindex", nil), name: "index", names: []string{"index"}, label: label("reindex", "handed"),
		}
		if err := h.process(); err != nil || h.ran {
			t.Errorf("ran: %v, %v", h.ran, err)
		}
		if err := <-waited; err != nil || time.Since(handed) > time.Minute {
			t.Errorf("the one that waits: %v, after %s", err, time.Since(handed))
		}
	})
}

func TestASeatIsForOneAndFreeAtOnceWhateverTheLockersDefaults(t *testing.T) {
	t.Parallel()
	for what, option := range map[string]core.Option{
		"min-hold": core.WithMinHold(time.Hour), "shared": core.WithShared(), "limit": core.WithLimit(5), "dedup": core.WithDedup(time.Hour),
	} {
		locks, err := core.New(memlock.New(), option)
		if err != nil {
			t.Fatal(err)
		}
		seats, err := locks.With(seatOptions("template")...)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		for range 2 {
			seat, err := seats.TryAcquire(t.Context(), "seat")
			if err != nil {
				t.Fatalf("%s: %v", what, err)
			}
			if _, err := seats.TryAcquire(t.Context(), "seat"); !errors.Is(err, core.ErrHeld) {
				t.Errorf("%s: a second one sits: %v", what, err)
			}
			if err := seat.Finish(t.Context(), nil); err != nil {
				t.Error(err)
			}
		}
		if err := locks.Close(t.Context()); err != nil {
			t.Error(err)
		}
	}
}
